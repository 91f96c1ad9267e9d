import fc from 'fast-check';
import { RUN_IFS, type RunIf } from '../workflow.js';

/** Random graphs without cycles, for property tests. */

export interface RandomStep {
  readonly after: readonly string[];
  readonly runIf: RunIf;
}

/** Steps in an order that says nothing of the graph; some names are those of prototypes. */
export function graphs(maxSteps = 12): fc.Arbitrary<Record<string, RandomStep>> {
  const names = [
    ...['constructor', 'toString', '10', '9'],
    ...Array.from({ length: maxSteps }, (_, i) => `s${i}`),
  ];
  return fc
    .shuffledSubarray(names, { minLength: 1, maxLength: maxSteps })
    .chain((order) =>
      fc.record({
        steps: fc.tuple(
          ...order.map((_, i) =>
            fc.record({
              after: fc.shuffledSubarray(order.slice(0, i), { maxLength: Math.min(i, 4) }),
              runIf: fc.constantFrom(...RUN_IFS),
            }),
          ),
        ),
        order: fc.constant(order),
        shuffled: fc.shuffledSubarray([...order.keys()], { minLength: order.length }),
      }),
    )
    .map(({ order, steps, shuffled }) => Object.fromEntries(shuffled.map((i) => [order[i]!, steps[i]!])));
}
