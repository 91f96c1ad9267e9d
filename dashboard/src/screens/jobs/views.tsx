import { computed, effect, signal } from '@preact/signals';
import { useState } from 'preact/hooks';
import { lastSession } from '../../api/session.js';
import { Dialog } from '../../parts/dialog.js';
import { Icon } from '../../parts/icon.js';
import { Menu } from '../../parts/menu.js';
import { addressOf } from '../../routing/root.js';
import { addressWith, type JobFilter, textOfFilter } from './job-filter.js';

/**
 * Views of the list by their names. A view is an address: it can be linked to, and is kept in this browser by its name, for the
 * keys of one tenant or for operators, because it may hold names and values that are no business of others.
 */

interface View {
  readonly name: string;
  readonly filter: JobFilter;
}

const USUAL: readonly View[] = [
  { name: 'Failed in the last hour', filter: { state: 'failed', since: '1h' } },
  { name: 'Running now', filter: { state: 'running' } },
  { name: 'Waiting', filter: { state: 'pending,blocked' } },
  { name: 'Tried more than once', filter: { state: 'pending,running', minAttempts: '2' } },
];

const storedName = computed(() => `punctual-views ${lastSession.value?.tenant ?? 'operator'}`);
const MOST_VIEWS = 50;

const own = signal<readonly View[]>([]);

effect(() => {
  own.value = readOwn();
});

function readOwn(): readonly View[] {
  try {
    const value: unknown = JSON.parse(localStorage.getItem(storedName.value) ?? '[]');
    return Array.isArray(value) ? value.filter(isView) : [];
  } catch {
    return [];
  }
}

function isView(value: unknown): value is View {
  const { name, filter } = (value ?? {}) as Partial<View>;
  return typeof name === 'string' && typeof filter === 'object' && filter !== null;
}

function keep(views: readonly View[]): void {
  own.value = views.slice(-MOST_VIEWS);
  localStorage.setItem(storedName.value, JSON.stringify(own.value));
}

/** The views that there are, and the way to keep another one. */
export function Views({ filter }: { readonly filter: JobFilter }) {
  const [isNaming, setNaming] = useState(false);
  const isFiltered = Object.keys(filter).length > 0;
  return (
    <>
      <Menu
        button={
          <>
            Views <Icon name="down" />
          </>
        }
      >
        {USUAL.map((view) => (
          <ViewLink key={view.name} view={view} />
        ))}
        {own.value.length > 0 && <hr />}
        {own.value.map((view) => (
          <div key={view.name} class="jobs-view">
            <ViewLink view={view} />
            <button
              type="button"
              class="button button-icon"
              aria-label={`Forget the view ${view.name}`}
              onClick={() => keep(own.value.filter((each) => each !== view))}
            >
              <Icon name="close" />
            </button>
          </div>
        ))}
        {isFiltered && (
          <>
            <hr />
            <button type="button" class="menu-item" onClick={() => setNaming(true)}>
              Keep this view …
            </button>
          </>
        )}
      </Menu>
      {isNaming && <NameDialog filter={filter} onClose={() => setNaming(false)} />}
    </>
  );
}

function ViewLink({ view: { name, filter } }: { readonly view: View }) {
  return (
    <a class="menu-item" href={addressOf(addressWith('/jobs', filter))} title={textOfFilter(filter)}>
      {name}
    </a>
  );
}

function NameDialog({ filter, onClose }: { readonly filter: JobFilter; readonly onClose: () => void }) {
  const [name, setName] = useState('');
  const save = (event: Event) => {
    event.preventDefault();
    if (name.trim() === '') return;
    keep([...own.value.filter((each) => each.name !== name.trim()), { name: name.trim(), filter }]);
    onClose();
  };
  return (
    <Dialog title="Keep this view" onClose={onClose}>
      <form onSubmit={save} class="jobs-name">
        <p class="dialog-text mono">{textOfFilter(filter)}</p>
        <label>
          Name
          <input
            type="text"
            autofocus
            maxLength={60}
            value={name}
            onInput={({ currentTarget }) => setName(currentTarget.value)}
          />
        </label>
        <p class="soft">Views are kept in this browser. To share one, send the address of the page.</p>
        <div class="dialog-buttons">
          <button type="submit" class="button button-main" disabled={name.trim() === ''}>
            Keep
          </button>
        </div>
      </form>
    </Dialog>
  );
}
