import { describe, expect, it } from 'vitest';
import { runGangCase } from '../../test/gang-model.js';
import { makeRandom } from '../../test/oracle/random.js';
import { type Pausing, planGangs, type WaitingGang } from './gang-plan.js';

const CASES = 10_000;

/** A gang that takes no time to make. */
function* asIs(gang: WaitingGang): Pausing<WaitingGang> {
  yield;
  return gang;
}

describe('the rule of gangs', () => {
  it('starves no gang that could start, and holds nothing for one that could not, in random clusters', () => {
    const wrong = new Map<string, number[]>();
    for (let seed = 0; seed < CASES; seed += 1) {
      for (const what of new Set(runGangCase(seed))) wrong.set(what, [...(wrong.get(what) ?? []), seed]);
    }
    expect(Object.fromEntries([...wrong].map(([what, seeds]) => [what, seeds.slice(0, 5)]))).toEqual({});
  }, 60_000);

  it('never blocks the event loop for long, with 1,000 kinds of workers and 100 gangs of 1,000 members', () => {
    const random = makeRandom(1);
    const pools = Array.from({ length: 1_000 }, () => ({ slots: 2, free: random.between(0, 1) }));
    const gangs: WaitingGang[] = Array.from({ length: 100 }, () => ({
      groups: Array.from({ length: 1_000 }, () => ({
        count: 1,
        pools: Array.from({ length: 30 }, () => random.between(0, 999)),
      })),
      uses: new Map([[0, 1_000]]),
      isAged: true,
      isOpen: true,
      opensSoon: true,
      target: null,
    }));
    const plan = planGangs(gangs.map(asIs), pools, [{ most: Number.POSITIVE_INFINITY, running: 0 }]);
    const pauses: number[] = [];
    for (let done = false; !done; ) {
      // The processor's time: what others on the machine take does not count.
      const before = process.cpuUsage();
      done = plan.next().done === true;
      const { user, system } = process.cpuUsage(before);
      pauses.push((user + system) / 1_000);
    }
    // A garbage collection may come in between; what counts is that no step is long by itself.
    pauses.sort((a, b) => a - b);
    expect(pauses[Math.floor(pauses.length * 0.99)]).toBeLessThan(8);
  });
});
