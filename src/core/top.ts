import { Heap } from './heap.js';

/** The first few of many values by `before`, without sorting all of them. */
export class Top<T> {
  /** The last of those that are kept comes first. */
  private readonly kept: Heap<T>;

  constructor(
    private readonly limit: number,
    private readonly before: (a: T, b: T) => boolean,
  ) {
    this.kept = new Heap((a, b) => before(b, a));
  }

  /** Offers a value; answers with the one that is not among the first, if there is one. */
  add(value: T): T | undefined {
    const { kept, limit, before } = this;
    if (kept.size < limit) {
      kept.push(value);
      return undefined;
    }
    const last = kept.peek();
    if (last === undefined || !before(value, last)) return value;
    kept.pop();
    kept.push(value);
    return last;
  }

  /** Removes the values that are kept and answers with them in order. */
  take(): T[] {
    return this.kept.drain().sort((a, b) => (this.before(a, b) ? -1 : 1));
  }
}
