/**
 * The first whole number in [low, high) for which `isReached` holds, or `high` if there is none. Once it holds it must
 * hold for every greater number.
 */
export function firstReached(low: number, high: number, isReached: (value: number) => boolean): number {
  let [from, until] = [low, high];
  while (from < until) {
    const middle = Math.floor((from + until) / 2);
    if (isReached(middle)) until = middle;
    else from = middle + 1;
  }
  return from;
}
