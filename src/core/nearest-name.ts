/** Finding the name that was probably meant by one that does not exist. */

/** More mistakes than these make another word. */
const MOST_MISTAKES = 3;
/** The part of the longer name that must be right. */
const LEAST_LIKENESS = 0.4;
/** No name of ours is longer; it bounds the work for what somebody typed. */
const MOST_LENGTH = 128;

/** The name that is most like the given one, apart from small and capital letters; undefined if none is like it. */
export function nearestName(given: string, names: Iterable<string>): string | undefined {
  if (given.length > MOST_LENGTH) return undefined;
  let nearest: string | undefined;
  let fewest = MOST_MISTAKES + 1;
  for (const name of names) {
    if (Math.abs(name.length - given.length) >= fewest) continue;
    const mistakes = distance(given.toLowerCase(), name.toLowerCase());
    const length = Math.max(given.length, name.length);
    if (mistakes >= fewest || (length - mistakes) / length <= LEAST_LIKENESS) continue;
    nearest = name;
    fewest = mistakes;
  }
  return nearest;
}

/** How many letters were changed, left out, added, or swapped with their neighbour. */
function distance(a: string, b: string): number {
  let [beforeLast, last]: [number[], number[]] = [[], Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const isSame = a[i - 1] === b[j - 1];
      let least = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1));
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isSwapped) least = Math.min(least, beforeLast[j - 2]! + 1);
      row.push(least);
    }
    [beforeLast, last] = [last, row];
  }
  return last[b.length]!;
}
