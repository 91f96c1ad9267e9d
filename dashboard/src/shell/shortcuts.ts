import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

/** Keys that do something anywhere on the page, except while somebody types. */

/** A key, what it does, and the words for the list of shortcuts. */
export interface Shortcut {
  /** As in `KeyboardEvent.key`; two keys one after the other have a space between them. */
  readonly keys: string;
  readonly words: string;
  readonly run: () => void;
}

/** How long the second key of two may take. */
const SECOND_KEY_MS = 1_500;

const known = signal<readonly Shortcut[]>([]);

/** All that work at this moment; of the same keys the newest. */
export function shortcuts(): readonly Shortcut[] {
  const byKeys = new Map(known.value.map((each) => [each.keys, each]));
  return [...byKeys.values()];
}

/** Makes a shortcut work while the caller is shown; without keys there is none. */
export function useShortcut(keys: string, words: string, run: () => void): void {
  const newest = useRef(run);
  newest.current = run;
  useEffect(() => {
    if (keys === '') return;
    const shortcut = { keys, words, run: () => newest.current() };
    known.value = [...known.peek(), shortcut];
    return () => {
      known.value = known.peek().filter((each) => each !== shortcut);
    };
  }, [keys, words]);
}

let first: { readonly key: string; readonly at: number } | null = null;

function isTyping({ target }: Event): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName))
  );
}

function press(event: KeyboardEvent): void {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
  if (isTyping(event) || document.querySelector('dialog[open]')) return;
  const both = first && event.timeStamp - first.at < SECOND_KEY_MS ? `${first.key} ${event.key}` : null;
  const all = shortcuts();
  const found = all.find(({ keys }) => keys === both) ?? all.find(({ keys }) => keys === event.key);
  first = null;
  if (found) {
    event.preventDefault();
    found.run();
  } else if (all.some(({ keys }) => keys.startsWith(`${event.key} `))) {
    first = { key: event.key, at: event.timeStamp };
  }
}

/** Has the page listen to keys until the returned function is called. */
export function listenToKeys(): () => void {
  document.addEventListener('keydown', press);
  return () => document.removeEventListener('keydown', press);
}
