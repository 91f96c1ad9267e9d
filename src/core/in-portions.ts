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

/** So long one piece of work may hold the event loop before others have their turn. */
const TURN_MS = 8;

/** For work in pieces of very different size: tells when it is time to let the event loop turn. */
export class Turn {
  private until = performance.now() + TURN_MS;

  get isOver(): boolean {
    return performance.now() >= this.until;
  }

  async next(): Promise<void> {
    await nextTurn();
    this.until = performance.now() + TURN_MS;
  }
}
