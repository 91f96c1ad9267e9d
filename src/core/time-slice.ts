import { setImmediate as nextTick } from 'node:timers/promises';

/** Long work is cut into slices, so that it does not block the event loop for everybody else in the process. */

/** Items that are worked on in one slice: a few milliseconds for jobs. */
export const PORTION = 1_000;

/** Works on many items in slices of `PORTION`. When they fit into one, all are done before this returns. */
export async function inPortions<T>(
  items: readonly T[],
  work: (portion: readonly T[], from: number) => void,
): Promise<void> {
  for (let from = 0; from < items.length; from += PORTION) {
    if (from > 0) await nextTick();
    work(items.length <= PORTION ? items : items.slice(from, from + PORTION), from);
  }
}

/** How long one slice may block the event loop. */
const SLICE_MS = 8;

/** Measures a slice of work whose steps differ too much in size to be counted. */
export class TimeSlice {
  private until = performance.now() + SLICE_MS;

  /** Whether it is time to call `next`. */
  get isOver(): boolean {
    return performance.now() >= this.until;
  }

  /** Lets the event loop run, then begins a new slice. */
  async next(): Promise<void> {
    await nextTick();
    this.until = performance.now() + SLICE_MS;
  }
}
