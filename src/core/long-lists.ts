/** For lists of any length: spread into the arguments of a call, as of `push` or `Math.max`, a long one overflows the stack. */

/** Appends a list to another. */
export function addAll<T>(list: T[], more: Iterable<T>): void {
  for (const item of more) list.push(item);
}

/** The least of the numbers, and of the one to begin with. */
export function least(numbers: Iterable<number>, first = Number.POSITIVE_INFINITY): number {
  let found = first;
  for (const number of numbers) found = Math.min(found, number);
  return found;
}

/** The greatest of the numbers, and of the one to begin with. */
export function greatest(numbers: Iterable<number>, first = Number.NEGATIVE_INFINITY): number {
  let found = first;
  for (const number of numbers) found = Math.max(found, number);
  return found;
}
