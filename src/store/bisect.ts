import { isDataError } from './database.js';

/**
 * Runs a batch; when the data of a row makes it fail, splits it in halves until the bad row is alone. A bad value of
 * one tenant thus costs others no more than O(log n) repeated statements.
 */
export async function bisect<T, R>(
  items: readonly T[],
  run: (items: readonly T[]) => Promise<readonly R[]>,
  onBad: (item: T, error: unknown) => unknown,
  /** Whether smaller parts may succeed after this failure. */
  mayHelp: (error: unknown) => boolean = isDataError,
): Promise<readonly R[]> {
  if (items.length === 0) return [];
  try {
    return await run(items);
  } catch (error) {
    if (!mayHelp(error)) throw error;
    if (items.length === 1) {
      await onBad(items[0]!, error);
      return [];
    }
    const half = items.length >> 1;
    const first = await bisect(items.slice(0, half), run, onBad, mayHelp);
    return [...first, ...(await bisect(items.slice(half), run, onBad, mayHelp))];
  }
}
