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

  /** Takes everything out, in no particular order. */
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
