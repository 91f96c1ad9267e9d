/** Operations on long lists: spreading one into the arguments of a call (`push`, `Math.max`) overflows the stack. */

/** Appends all items to a list. */
export function addAll<T>(list: T[], more: Iterable<T>): void {
  for (const item of more) list.push(item);
}

/** The least of the numbers and `first`. */
export function least(numbers: Iterable<number>, first = Number.POSITIVE_INFINITY): number {
  let found = first;
  for (const number of numbers) found = Math.min(found, number);
  return found;
}

/** The greatest of the numbers and `first`. */
export function greatest(numbers: Iterable<number>, first = Number.NEGATIVE_INFINITY): number {
  let found = first;
  for (const number of numbers) found = Math.max(found, number);
  return found;
}
