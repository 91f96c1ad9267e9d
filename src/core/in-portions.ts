import { setImmediate as nextTurn } from 'node:timers/promises';

/** So many jobs are worked on in one turn of the event loop: a few milliseconds, whatever is asked for at once. */
export const PORTION = 1_000;

/**
 * Does something for many items without keeping everybody else in the process waiting: after each portion the
 * event loop turns. Few items are done at once.
 */
export async function inPortions<T>(
  items: readonly T[],
  work: (portion: readonly T[], from: number) => void,
): Promise<void> {
  for (let from = 0; from < items.length; from += PORTION) {
    if (from > 0) await nextTurn();
    work(items.length <= PORTION ? items : items.slice(from, from + PORTION), from);
  }
}
