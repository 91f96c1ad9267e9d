import { randomInt } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import { type Timing, timetable } from '../../src/core/schedule/timetable.js';
import {
  compare,
  compareCron,
  compareWherePoliciesMatter,
  compareWithWalk,
  type Expected,
  newTally,
} from './comparison.js';
import { everyNoon } from './dates.js';
import { dueMoments, POLICIES } from './due-moments.js';
import { readExpression } from './expression.js';
import { randomExpression, TABLE, TABLE_WITH_SECONDS } from './expressions.js';
import { makeRandom } from './random.js';
import { DAY, HOUR, MINUTE, SECOND } from './walk.js';
import {
  aroundChangeBySeconds,
  aroundMoment,
  changeNear,
  NOTABLE,
  NOTABLE_BY_SECONDS,
  randomWindow,
  ZONES,
} from './windows.js';
import { compareFewDates, compareZone } from './zone.js';

// The same seed makes the same run: PUNCTUAL_ORACLE_SEED=… as printed. PUNCTUAL_ORACLE=full compares every zone.
const seed = Number(process.env.PUNCTUAL_ORACLE_SEED ?? randomInt(2 ** 31));
const full = process.env.PUNCTUAL_ORACLE === 'full';
const tally = newTally();
const slow = { timeout: 120_000 };

/** Random numbers of its own for each test, so that a test alone repeats what it did among the others. */
const randomFor = (test: number) => makeRandom(seed + test);

console.log(`oracle: seed ${seed}`);
afterAll(() => {
  const { comparisons, moments, questions } = tally;
  console.log(`oracle: seed ${seed}, ${comparisons} comparisons, ${moments} moments, ${questions} questions`);
});

describe(`product and oracle (seed ${seed}) agree`, () => {
  it.each(NOTABLE)('in %s near %s, where %s', slow, (timezone, near) => {
    const random = randomFor(1);
    const walked = aroundMoment(timezone, changeNear(timezone, near).at);
    expect(TABLE.flatMap((text) => compareWherePoliciesMatter(text, walked, random, tally))).toEqual([]);
  });

  it('under every policy, which makes no difference where every hour is let through', slow, () => {
    const random = randomFor(8);
    const everyHour = TABLE.filter((text) => readExpression(text).everyHour);
    const differences = NOTABLE.slice(0, 2).flatMap(([timezone, near]) => {
      const walked = aroundMoment(timezone, changeNear(timezone, near).at);
      return everyHour.flatMap((text) => compareWithWalk(text, POLICIES, walked, random, tally));
    });
    expect(differences).toEqual([]);
  });

  it.each([...NOTABLE_BY_SECONDS, ...NOTABLE.slice(1, 3)])(
    'in %s near %s, where %s, by the second',
    slow,
    (timezone, near) => {
      const random = randomFor(2);
      const walked = aroundChangeBySeconds(timezone, changeNear(timezone, near));
      const texts = [...TABLE, ...TABLE_WITH_SECONDS, randomExpression(random, true)];
      expect(texts.flatMap((text) => compareWherePoliciesMatter(text, walked, random, tally))).toEqual([]);
    },
  );

  it('on 400 walks with random expressions through random zones', slow, () => {
    const random = randomFor(3);
    const differences: string[] = [];
    for (let windows = 0; windows < 40; windows += 1) {
      const walked = randomWindow(random);
      for (let walks = 0; walks < 10; walks += 1) {
        const policy = random.pick(POLICIES);
        differences.push(...compareWithWalk(randomExpression(random), [policy], walked, random, tally));
      }
    }
    expect(differences).toEqual([]);
  });

  it('about days of the month and of the week over all years', slow, () => {
    const random = randomFor(4);
    const differences: string[] = [];
    for (let count = 0; count < 100; count += 1) {
      const [, , dayOfMonth, month, dayOfWeek] = randomExpression(random).split(' ') as [
        string,
        string,
        string,
        string,
        string,
      ];
      const expected = everyNoon({ dayOfMonth, month, dayOfWeek });
      const dst = random.pick(POLICIES);
      const timing = { kind: 'cron', expression: expected.text, timezone: 'UTC', dst } as const;
      differences.push(...compareCron(timing, expected, random, tally));
    }
    expect(differences).toEqual([]);
  });

  it('about moments that lie years apart', slow, () => {
    const random = randomFor(5);
    const zones = Array.from({ length: 5 }, () => random.pick(ZONES));
    expect(zones.flatMap((timezone) => compareFewDates(timezone, random, tally))).toEqual([]);
  });

  it('about cron inside bounds that are included', slow, () => {
    const random = randomFor(6);
    const differences: string[] = [];
    for (let windows = 0; windows < 5; windows += 1) {
      const { timezone, from, to, ...walked } = randomWindow(random);
      for (const text of TABLE) {
        const dst = random.pick(POLICIES);
        const all = dueMoments(readExpression(text), dst, { timezone, from, to, ...walked });
        const bounds = randomBounds(all, from, to);
        const table = timetable({ kind: 'cron', expression: text, timezone, dst }, bounds);
        differences.push(
          ...compare(table, within(bounds, { about: text, from, to, moments: all }), random, tally),
        );
      }
    }
    expect(differences).toEqual([]);

    function randomBounds(moments: readonly number[], least: number, greatest: number) {
      const bound = () => {
        if (random.oneIn(6)) return null;
        if (moments.length === 0 || random.oneIn(4)) return random.between(least, greatest);
        return random.pick(moments) + random.pick([-1, 0, 0, 1]);
      };
      return { startAt: bound(), endAt: bound() };
    }
  });

  it('about intervals and single moments inside bounds that are included', slow, () => {
    const random = randomFor(7);
    const differences: string[] = [];
    for (let count = 0; count < 300; count += 1) {
      const everyMs = random.pick([250, 999, SECOND, 7 * SECOND, MINUTE, 90 * MINUTE, 11 * HOUR, DAY]);
      const from = Date.UTC(2024, 0, 1) + random.between(0, DAY);
      const to = from + random.between(1, 300 * everyMs);
      const timing: Timing = random.oneIn(4)
        ? { kind: 'at', at: random.between(from - HOUR, to + HOUR) }
        : { kind: 'every', everyMs, from: from + random.between(-900 * everyMs, 200 * everyMs) };
      const moments = plainMoments(timing, from, to);
      const bound = () =>
        moments.length === 0 || random.oneIn(3) ? null : random.pick(moments) + random.pick([-1, 0, 0, 1]);
      const bounds = { startAt: bound(), endAt: bound() };
      const expected = within(bounds, { about: JSON.stringify({ timing, bounds }), from, to, moments });
      differences.push(...compare(timetable(timing, bounds), expected, random, tally));
    }
    expect(differences).toEqual([]);
  });
});

if (full) {
  describe(`product and oracle (seed ${seed}) agree at every change of the clocks`, () => {
    it.each(ZONES)('of %s', { timeout: 1_800_000 }, (timezone) => {
      expect(compareZone(timezone, randomFor(ZONES.indexOf(timezone) + 1000), tally)).toEqual([]);
    });
  });
}

/** The moments of an interval, one after another, or the one of a single moment. */
function plainMoments(timing: Exclude<Timing, { kind: 'cron' }>, from: number, to: number): number[] {
  if (timing.kind === 'at') return timing.at >= from && timing.at < to ? [timing.at] : [];
  const moments: number[] = [];
  for (let moment = timing.from; moment < to; moment += timing.everyMs) {
    if (moment >= from) moments.push(moment);
  }
  return moments;
}

function within(bounds: { startAt: number | null; endAt: number | null }, expected: Expected): Expected {
  const { startAt, endAt } = bounds;
  return {
    ...expected,
    about: `${expected.about} from ${startAt} to ${endAt}`,
    moments: expected.moments.filter(
      (moment) => (startAt === null || moment >= startAt) && (endAt === null || moment <= endAt),
    ),
  };
}
