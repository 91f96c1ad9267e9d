/** The values that one field of a cron expression lets through, ready for asking "which is next" and "how many". */
export class ValueSet {
  /** In ascending order, each once. */
  readonly values: readonly number[];
  /** How many values lie below each number from 0 to one past the largest possible. */
  private readonly below: Uint8Array;

  constructor(values: Iterable<number>, max: number) {
    const present = new Uint8Array(max + 1);
    for (const value of values) present[value] = 1;
    this.below = new Uint8Array(max + 2);
    const sorted: number[] = [];
    for (let value = 0; value <= max; value++) {
      if (present[value] === 1) sorted.push(value);
      this.below[value + 1] = sorted.length;
    }
    this.values = sorted;
  }

  get size(): number {
    return this.values.length;
  }

  has(value: number): boolean {
    return this.below[value + 1] !== this.below[value];
  }

  countBelow(value: number): number {
    return this.below[value]!;
  }
}
