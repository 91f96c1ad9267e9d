import { computed, signal } from '@preact/signals';
import { useEffect, useId, useState } from 'preact/hooks';
import type { MatchingIds } from '../../../src/core/wire.js';
import { get } from '../api/client.js';
import { may } from '../api/session.js';
import { Dialog } from '../parts/dialog.js';
import { goTo } from '../routing/location.js';
import { ROUTES } from '../routing/routes.js';
import { type Command, screenCommands } from './screen-commands.js';
import { listenToKeys, shortcuts, useShortcut } from './shortcuts.js';
import { THEMES, theme } from './theme.js';

/** The command palette: everything that can be gone to or done, found by typing. */

const open = signal<'palette' | 'shortcuts' | null>(null);

export function openPalette(): void {
  open.value = 'palette';
}

export function openShortcuts(): void {
  open.value = 'shortcuts';
}

const screens = computed((): Command[] =>
  ROUTES.filter((route) => route.group !== undefined && may(route.scope ?? 'read')).map(
    ({ title, path }) => ({
      title,
      kind: 'go to',
      run: () => goTo(path),
    }),
  ),
);

const OF_SHELL: readonly Command[] = [
  ...THEMES.map((each) => ({
    title: `Theme: ${each}`,
    kind: 'do',
    run: () => {
      theme.value = each;
    },
  })),
  { title: 'Keyboard shortcuts', kind: 'show', run: openShortcuts },
];

/** What is open over the page because of a key, and the keys that work everywhere. */
export function Commands() {
  useEffect(listenToKeys, []);
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return;
      // Nothing comes over a window that asks for something, nor over the sign-in.
      if (open.value === null && document.querySelector('dialog[open]')) return;
      event.preventDefault();
      open.value = open.value === 'palette' ? null : 'palette';
    };
    document.addEventListener('keydown', press);
    return () => document.removeEventListener('keydown', press);
  }, []);
  useShortcut('/', 'Search', focusSearch);
  useShortcut('?', 'Show the keyboard shortcuts', openShortcuts);
  return (
    <>
      {ROUTES.filter(({ letter, scope }) => letter && may(scope ?? 'read')).map(({ letter, title, path }) => (
        <GoKey key={path} letter={letter!} title={title} path={path} />
      ))}
      {open.value === 'palette' && <Palette />}
      {open.value === 'shortcuts' && <ShortcutList />}
    </>
  );
}

function GoKey({
  letter,
  title,
  path,
}: {
  readonly letter: string;
  readonly title: string;
  readonly path: string;
}) {
  useShortcut(`g ${letter}`, `Go to ${title}`, () => goTo(path));
  return null;
}

/** A screen with a search of its own has it marked; else the palette is where to search. */
function focusSearch(): void {
  const own = document.querySelector<HTMLElement>('[data-search]');
  if (own) own.focus();
  else openPalette();
}

function close(): void {
  open.value = null;
}

function ShortcutList() {
  return (
    <Dialog title="Keyboard shortcuts" onClose={close}>
      <dl class="shortcuts">
        <div>
          <dt>
            <kbd>Ctrl</kbd> <kbd>K</kbd>
          </dt>
          <dd>Open the command palette</dd>
        </div>
        {shortcuts().map(({ keys, words }) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{words}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

const MOST_SHOWN = 12;

function Palette() {
  const id = useId();
  const [text, setText] = useState('');
  const [chosen, setChosen] = useState(0);
  const jobs = useJobsById(text);
  const all = [...screenCommands(), ...screens.value, ...OF_SHELL];
  const found = [...jobs, ...bestOf(all, text)].slice(0, MOST_SHOWN);
  const at = Math.min(chosen, Math.max(0, found.length - 1));
  const run = (command: Command | undefined) => {
    if (!command) return;
    close();
    command.run();
  };
  const press = (event: KeyboardEvent) => {
    const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (by !== 0) {
      event.preventDefault();
      setChosen((at + by + found.length) % Math.max(1, found.length));
    } else if (event.key === 'Enter') {
      event.preventDefault();
      run(found[at]);
    }
  };
  return (
    <Dialog title="Search or go to" onClose={close}>
      <input
        type="text"
        role="combobox"
        aria-label="Search or go to"
        aria-expanded="true"
        aria-controls={id}
        aria-activedescendant={found.length > 0 ? `${id}-${at}` : undefined}
        autocomplete="off"
        spellcheck={false}
        autofocus
        placeholder="A screen, a command, or the id of a job"
        value={text}
        onInput={({ currentTarget }) => {
          setText(currentTarget.value);
          setChosen(0);
        }}
        onKeyDown={press}
      />
      <div id={id} class="palette" role="listbox" aria-label="Commands">
        {found.map((command, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the field above
          // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the field, which names the chosen one
          <div
            key={`${command.kind} ${command.title}`}
            id={`${id}-${i}`}
            role="option"
            aria-selected={i === at}
            onClick={() => run(command)}
          >
            <span>{command.title}</span>
            <span class="soft">{command.kind}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="soft palette-none">Nothing is called like this.</p>}
    </Dialog>
  );
}

/** The commands that fit a text: first those that begin with it, then those that have it, then those that have its letters. */
function bestOf(commands: readonly Command[], text: string): readonly Command[] {
  const wanted = text.trim().toLowerCase();
  const rank = ({ title }: Command) => {
    const at = title.toLowerCase().indexOf(wanted);
    return at === 0 ? 0 : at > 0 ? 1 : 2;
  };
  return commands.filter(({ title }) => fits(title, text)).sort((a, b) => rank(a) - rank(b));
}

/** Whether the letters of a text come one after the other in a title. */
function fits(title: string, text: string): boolean {
  const name = title.toLowerCase();
  let from = 0;
  for (const letter of text.toLowerCase().replace(/\s/g, '')) {
    from = name.indexOf(letter, from) + 1;
    if (from === 0) return false;
  }
  return true;
}

const ID_START = /^[0-9a-f]{6,8}(-[0-9a-f-]{0,27})?$/i;
const PAUSE_MS = 150;

/** The jobs whose ids begin with a text that looks like an id. */
function useJobsById(text: string): readonly Command[] {
  const [ids, setIds] = useState<readonly string[]>([]);
  const prefix = text.trim().toLowerCase();
  useEffect(() => {
    setIds([]);
    if (!ID_START.test(prefix)) return;
    const over = new AbortController();
    const timer = setTimeout(() => {
      get<MatchingIds>('/v1/ids', { query: { kind: 'job', prefix }, signal: over.signal }).then(
        (found) => setIds(found.ids),
        () => undefined,
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      over.abort();
    };
  }, [prefix]);
  return ids.map((id) => ({ title: id, kind: 'job', run: () => goTo(`/jobs/${id}`) }));
}
