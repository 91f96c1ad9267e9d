/** A value that knows its place in an indexed heap, so that it can be moved or taken out from anywhere. */
export interface Placed {
  /** Its index in the heap; -1 outside of one. */
  place: number;
}

/** A binary heap whose values can change their order: `update` moves one to where it now belongs. */
export class IndexedHeap<T extends Placed> {
  private readonly values: T[] = [];

  constructor(private readonly before: (a: T, b: T) => boolean) {}

  get size(): number {
    return this.values.length;
  }

  peek(): T | undefined {
    return this.values[0];
  }

  /** Puts a value in, or moves it to its new place. */
  update(value: T): void {
    if (value.place < 0) value.place = this.values.push(value) - 1;
    this.rise(value);
    this.sink(value);
  }

  remove(value: T): void {
    const { place } = value;
    if (place < 0) return;
    value.place = -1;
    const last = this.values.pop()!;
    if (last === value) return;
    this.put(last, place);
    this.rise(last);
    this.sink(last);
  }

  private put(value: T, place: number): void {
    this.values[place] = value;
    value.place = place;
  }

  private rise(value: T): void {
    while (value.place > 0) {
      const parent = this.values[(value.place - 1) >> 1]!;
      if (!this.before(value, parent)) return;
      this.swap(value, parent);
    }
  }

  private sink(value: T): void {
    for (;;) {
      const left = this.values[2 * value.place + 1];
      const right = this.values[2 * value.place + 2];
      const child = right && this.before(right, left!) ? right : left;
      if (!child || !this.before(child, value)) return;
      this.swap(value, child);
    }
  }

  private swap(a: T, b: T): void {
    const { place } = a;
    this.put(a, b.place);
    this.put(b, place);
  }
}
