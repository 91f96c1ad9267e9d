/** A binary heap: the smallest value by `before` comes first. */
export class Heap<T> {
  private readonly values: T[] = [];

  constructor(private readonly before: (a: T, b: T) => boolean) {}

  get size(): number {
    return this.values.length;
  }

  peek(): T | undefined {
    return this.values[0];
  }

  /** Visits all values, in no order. */
  each(visit: (value: T) => void): void {
    for (const value of this.values) visit(value);
  }

  push(value: T): void {
    const { values, before } = this;
    let index = values.push(value) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!before(value, values[parent]!)) break;
      values[index] = values[parent]!;
      index = parent;
    }
    values[index] = value;
  }

  pop(): T | undefined {
    const { values } = this;
    const first = values[0];
    const last = values.pop();
    if (values.length > 0 && last !== undefined) this.sink(last);
    return first;
  }

  /** Removes all values and answers with them, in no particular order. */
  drain(): T[] {
    return this.values.splice(0);
  }

  private sink(value: T): void {
    const { values, before } = this;
    const half = values.length >> 1;
    let index = 0;
    while (index < half) {
      let child = 2 * index + 1;
      if (child + 1 < values.length && before(values[child + 1]!, values[child]!)) child += 1;
      if (!before(values[child]!, value)) break;
      values[index] = values[child]!;
      index = child;
    }
    values[index] = value;
  }
}

/** A value of an indexed heap. It knows its index, so that it can be moved or removed in O(log n). */
export interface HeapItem {
  /** Its index in the heap; -1 while it is in none. */
  heapIndex: number;
}

/** A binary heap whose values may change their order while they are in it: `update` restores it. */
export class IndexedHeap<T extends HeapItem> {
  private readonly values: T[] = [];

  constructor(private readonly before: (a: T, b: T) => boolean) {}

  get size(): number {
    return this.values.length;
  }

  peek(): T | undefined {
    return this.values[0];
  }

  /** Adds a value, or moves it after its order has changed. */
  update(value: T): void {
    if (value.heapIndex < 0) value.heapIndex = this.values.push(value) - 1;
    this.rise(value);
    this.sink(value);
  }

  remove(value: T): void {
    const { heapIndex } = value;
    if (heapIndex < 0) return;
    value.heapIndex = -1;
    const last = this.values.pop()!;
    if (last === value) return;
    this.put(last, heapIndex);
    this.rise(last);
    this.sink(last);
  }

  private put(value: T, index: number): void {
    this.values[index] = value;
    value.heapIndex = index;
  }

  private rise(value: T): void {
    while (value.heapIndex > 0) {
      const parent = this.values[(value.heapIndex - 1) >> 1]!;
      if (!this.before(value, parent)) return;
      this.swap(value, parent);
    }
  }

  private sink(value: T): void {
    for (;;) {
      const left = this.values[2 * value.heapIndex + 1];
      const right = this.values[2 * value.heapIndex + 2];
      const child = right && this.before(right, left!) ? right : left;
      if (!child || !this.before(child, value)) return;
      this.swap(value, child);
    }
  }

  private swap(a: T, b: T): void {
    const { heapIndex } = a;
    this.put(a, b.heapIndex);
    this.put(b, heapIndex);
  }
}
