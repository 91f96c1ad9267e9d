/** Random numbers that come again with the same seed. */
export interface Random {
  readonly seed: number;
  /** A whole number from `least` to `greatest`, both included. */
  between(least: number, greatest: number): number;
  /** One of several. */
  pick<T>(choices: readonly T[]): T;
  /** True once in so many times. */
  oneIn(times: number): boolean;
}

/** Makes a source of random numbers. */
export function makeRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (least: number, greatest: number) => least + Math.floor(next() * (greatest - least + 1));
  return {
    seed,
    between,
    pick: (choices) => choices[between(0, choices.length - 1)]!,
    oneIn: (times) => between(1, times) === 1,
  };
}
