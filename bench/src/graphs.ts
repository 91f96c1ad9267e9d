/** The graphs of the scenario `workflow`, the same for every system. */

/** For each step the steps before it, which have smaller numbers. */
export type Graph = readonly (readonly number[])[];

export type GraphName = 'wide' | 'fan-in' | 'deep' | 'diamond';

export const WIDTH = 5_000;
export const DEPTH = 1_000;

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

const MAKE: Readonly<Record<GraphName, () => Graph>> = {
  wide: () => [[], ...range(0, WIDTH).map(() => [0]), range(1, WIDTH + 1)],
  'fan-in': () => [...range(0, WIDTH).map(() => []), range(0, WIDTH)],
  deep: () => range(0, DEPTH).map((step) => (step === 0 ? [] : [step - 1])),
  diamond: () => [[], [0], [0], [1, 2]],
};

export function graphOf(name: GraphName): Graph {
  return MAKE[name]();
}
