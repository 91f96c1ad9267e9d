/** The exhaustive comparison of one zone: every change of its clocks in every year. */

import { compareCron, compareWherePoliciesMatter, type Tally } from './comparison.js';
import { fewDates } from './dates.js';
import { POLICIES } from './due-moments.js';
import { randomExpression, randomYearly, TABLE, TABLE_WITH_SECONDS } from './expressions.js';
import type { Random } from './random.js';
import { aroundChangeBySeconds, aroundMoment, changesIn, FIRST_YEAR, LAST_YEAR } from './windows.js';

const RANDOM_EXPRESSIONS = 10;

/** Everything that product and oracle disagree about in a zone. */
export function compareZone(timezone: string, random: Random, tally: Tally): string[] {
  const differences: string[] = [];
  const seen = new Set<number>();
  for (let year = FIRST_YEAR; year <= LAST_YEAR; year += 1) {
    const changes = changesIn(timezone, year);
    for (const change of changes) {
      const walked = aroundMoment(timezone, change.at);
      for (const text of TABLE) differences.push(...compareWherePoliciesMatter(text, walked, random, tally));
      for (let count = 0; count < RANDOM_EXPRESSIONS; count += 1) {
        differences.push(...compareWherePoliciesMatter(randomExpression(random), walked, random, tally));
      }
      // Seconds are slow to walk through, and changes of one length look alike to them.
      if (seen.has(change.byMs)) continue;
      seen.add(change.byMs);
      const bySeconds = aroundChangeBySeconds(timezone, change);
      for (const text of [...TABLE_WITH_SECONDS, randomExpression(random, true)]) {
        differences.push(...compareWherePoliciesMatter(text, bySeconds, random, tally));
      }
    }
    if (changes.length === 0 && year % 5 === 0) {
      const walked = aroundMoment(timezone, random.between(Date.UTC(year, 0), Date.UTC(year + 1, 0)));
      for (const text of TABLE) differences.push(...compareWherePoliciesMatter(text, walked, random, tally));
    }
  }
  differences.push(...compareFewDates(timezone, random, tally));
  return differences;
}

/** An expression that names few dates, over all years: its moments lie far apart. */
export function compareFewDates(timezone: string, random: Random, tally: Tally): string[] {
  const text = randomYearly(random);
  const dst = random.pick(POLICIES);
  const timing = { kind: 'cron', expression: text, timezone, dst } as const;
  return compareCron(timing, fewDates(text, timezone, dst), random, tally);
}
