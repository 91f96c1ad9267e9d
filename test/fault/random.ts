/** A seeded source of chance: the same seed gives the same plan, so that a run can be replayed. */
export class Random {
  #state: number;

  constructor(readonly seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number of [0, 1); the generator is mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number between both ends, which are possible too. */
  between(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  pick<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.next() * choices.length)]!;
  }

  /** One of the choices, each as often as its share of a hundred says. */
  weighted<T>(choices: readonly (readonly [share: number, choice: T])[]): T {
    let left = this.next() * 100;
    for (const [share, choice] of choices) {
      left -= share;
      if (left < 0) return choice;
    }
    return choices[0]![1];
  }

  /** The same things in another order. */
  shuffle<T>(things: readonly T[]): T[] {
    const shuffled = [...things];
    for (let last = shuffled.length - 1; last > 0; last -= 1) {
      const other = this.between(0, last);
      [shuffled[last], shuffled[other]] = [shuffled[other]!, shuffled[last]!];
    }
    return shuffled;
  }

  /** A source of its own, so that what one part draws does not change what another gets. */
  branch(): Random {
    return new Random(Math.floor(this.next() * 4_294_967_296));
  }
}
