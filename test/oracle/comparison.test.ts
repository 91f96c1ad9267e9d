import { describe, expect, it } from 'vitest';
import { type Timetable, timetable } from '../../src/core/schedule/timetable.js';
import { compare, compareCron, compareWithWalk, newTally, UNBOUNDED } from './comparison.js';
import { dueMoments, POLICIES } from './due-moments.js';
import { readExpression } from './expression.js';
import { makeRandom } from './random.js';
import { HOUR } from './walk.js';
import { aroundMoment, changeNear } from './windows.js';

const timezone = 'Europe/Berlin';
const spring = aroundMoment(timezone, changeNear(timezone, '2024-03-31').at);
const autumn = aroundMoment(timezone, changeNear(timezone, '2024-10-27').at);

/** What the comparison says about the product's timetable for one policy, held against another policy's moments. */
function confuse(
  walked: typeof spring,
  product: (typeof POLICIES)[number],
  oracle: (typeof POLICIES)[number],
) {
  const expression = '30 2 * * *';
  const moments = dueMoments(readExpression(expression), oracle, walked);
  const table = timetable({ kind: 'cron', expression, timezone, dst: product }, UNBOUNDED);
  return compare(table, { about: '', ...walked, moments }, makeRandom(1), newTally());
}

describe('the comparison', () => {
  it('tells every policy from every other where it makes a difference', () => {
    for (const one of POLICIES) {
      for (const other of POLICIES) {
        expect(confuse(spring, one, other).length > 0).toBe(one.gap !== other.gap);
        expect(confuse(autumn, one, other).length > 0).toBe(one.overlap !== other.overlap);
      }
    }
  });

  const dst = POLICIES[0]!;
  const right = timetable({ kind: 'cron', expression: '0 */6 * * *', timezone: 'UTC', dst }, UNBOUNDED);
  const expected = {
    about: '',
    from: 0,
    to: 24 * HOUR,
    moments: [0, 6, 12, 18].map((hour) => hour * HOUR),
  };

  it.each<[what: string, wrong: Partial<Timetable>]>([
    [
      'leaves one out',
      { next: (after) => right.next(after < 12 * HOUR ? after : Math.max(after, 18 * HOUR)) },
    ],
    ['is a millisecond late', { next: (after) => right.next(after)! + 1 }],
    ['comes back to where it was', { next: (after) => (after >= 12 * HOUR ? 12 * HOUR : right.next(after)) }],
    ['looks back too far', { previous: (until) => right.previous(until - 1) }],
    ['counts its beginning', { count: (after, until) => right.count(after - 1, until) }],
    ['does not count its end', { count: (after, until) => right.count(after, until - 1) }],
  ])('notices a timetable that %s', (_, wrong) => {
    const table: Timetable = {
      next: wrong.next ?? ((after) => right.next(after)),
      previous: wrong.previous ?? ((until) => right.previous(until)),
      count: wrong.count ?? ((after, until) => right.count(after, until)),
      note: () => undefined,
    };
    expect(compare(table, expected, makeRandom(7), newTally())).not.toEqual([]);
    expect(compare(right, expected, makeRandom(7), newTally())).toEqual([]);
  });

  it('notices a refusal, unless the expression names no date', () => {
    const from = 0;
    const refused = (expression: string) =>
      compareCron(
        { kind: 'cron', expression, timezone: 'No/Where', dst },
        { about: '', from, to: HOUR, moments: [] },
        makeRandom(1),
        newTally(),
      );
    expect(refused('0 0 29 2 *')).toHaveLength(1);
    expect(refused('0 0 31 2 *')).toEqual([]);
  });

  it('counts what it has done', () => {
    const tally = newTally();
    expect(compareWithWalk('0 3 * * *', POLICIES, spring, makeRandom(1), tally)).toEqual([]);
    expect(tally.comparisons).toBe(6);
    expect(tally.moments).toBe(24);
  });
});
