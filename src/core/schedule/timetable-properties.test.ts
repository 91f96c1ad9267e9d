import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseCron } from './parse-cron.js';
import { type Dst, type Timetable, timetable } from './timetable.js';

const OPEN = { startAt: null, endAt: null };
const MINUTE = 60_000;
const DAY = 86_400_000;

/** Moments around which clocks change, each in its zone. */
const CHANGES: readonly (readonly [zone: string, at: string])[] = [
  ['Europe/Berlin', '2026-03-29T01:00Z'],
  ['Europe/Berlin', '2026-10-25T01:00Z'],
  ['Europe/Berlin', '1893-03-31T23:06:32Z'],
  ['America/New_York', '2026-03-08T07:00Z'],
  ['America/New_York', '2026-11-01T06:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T15:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T15:30Z'],
  ['Pacific/Apia', '2011-12-30T10:00Z'],
  ['Pacific/Kwajalein', '1993-08-21T12:00Z'],
  ['Asia/Manila', '1844-12-30T16:00Z'],
  ['Africa/Cairo', '2026-04-23T22:00Z'],
  ['Africa/Cairo', '2026-10-29T21:00Z'],
  ['America/Sao_Paulo', '2018-11-04T03:00Z'],
  ['America/Sao_Paulo', '2019-02-17T02:00Z'],
  ['America/Havana', '2026-03-08T05:00Z'],
  ['Europe/Dublin', '2026-10-25T01:00Z'],
  ['Asia/Tehran', '2022-03-21T20:30Z'],
  ['Africa/Casablanca', '2026-02-15T02:00Z'],
  ['Africa/Casablanca', '2026-03-22T02:00Z'],
  ['Antarctica/Troll', '2026-03-29T01:00Z'],
  ['UTC', '2026-01-01T00:00Z'],
];

const value = (min: number, max: number) => fc.integer({ min, max });
const plain = (min: number, max: number) =>
  fc.oneof(
    fc.constant('*'),
    value(min, max).map(String),
    value(1, max - min + 1).map((step) => `*/${step}`),
    fc.tuple(value(min, max), value(min, max)).map(([a, b]) => `${Math.min(a, b)}-${Math.max(a, b)}`),
    fc.tuple(value(min, max), value(1, max - min + 1)).map(([from, step]) => `${from}/${step}`),
    fc.array(value(min, max), { minLength: 2, maxLength: 4 }).map((values) => values.join(',')),
  );
const monthDay = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('*', '?') },
  { weight: 2, arbitrary: plain(1, 31) },
  { weight: 1, arbitrary: fc.constantFrom('L', 'L-1', 'LW', '1W', '15W', '31W', '1,L') },
);
const weekday = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('*', '?') },
  { weight: 2, arbitrary: plain(0, 7) },
  { weight: 1, arbitrary: fc.constantFrom('5L', '0L', 'SUN#1', 'SUN#2', 'FRI#5', 'MON,FRIL') },
);
const month = fc.oneof({ weight: 3, arbitrary: fc.constant('*') }, { weight: 1, arbitrary: plain(1, 12) });

function isTaken(expression: string): boolean {
  try {
    parseCron(expression);
    return true;
  } catch {
    return false;
  }
}

const minutes = fc
  .tuple(plain(0, 59), plain(0, 23), monthDay, month, weekday)
  .map((fields) => fields.join(' '));
const seconds = fc.tuple(plain(0, 59), minutes).map((fields) => fields.join(' '));
const expression = fc
  .oneof({ weight: 4, arbitrary: minutes }, { weight: 1, arbitrary: seconds })
  .filter(isTaken);
const dst: fc.Arbitrary<Dst> = fc.record({
  gap: fc.constantFrom('shift', 'skip'),
  overlap: fc.constantFrom('first', 'last', 'both'),
});

/** An expression in a zone, and a moment near one of its changes. */
const situation = fc
  .record({ expression, dst, change: fc.constantFrom(...CHANGES), distance: value(-3 * 1_440, 3 * 1_440) })
  .map(({ change: [timezone, at], distance, ...rest }) => ({
    ...rest,
    timezone,
    moment: Date.parse(at) + distance * MINUTE,
  }));

/** The older ones have offsets with seconds, so that steps of a minute would pass over their minutes. */
const wholeMinutes = situation.filter(({ moment }) => moment > 0);

function tableOf(of: { expression: string; timezone: string; dst: Dst }): Timetable {
  return timetable({ kind: 'cron', ...of }, OPEN);
}

/** At most `most` occurrences in (after, until], and whether these are all. */
function walk(
  table: Timetable,
  after: number,
  until: number,
  most: number,
): { found: number[]; whole: boolean } {
  const found: number[] = [];
  let at = table.next(after);
  while (at !== null && at <= until && found.length < most) {
    found.push(at);
    at = table.next(at);
  }
  return { found, whole: at === null || at > until };
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** What a clock shows, asked of Intl directly. */
function wallClock(timezone: string, at: number): number {
  const format =
    formats.get(timezone) ??
    new Intl.DateTimeFormat('sv-SE', { timeZone: timezone, dateStyle: 'short', timeStyle: 'medium' });
  formats.set(timezone, format);
  return Date.parse(`${format.format(at).replace(' ', 'T')}Z`) / 1_000;
}

describe('occurrences of any expression near a change of the clocks', () => {
  it('come in order, on whole seconds, and are found from both sides', () => {
    fc.assert(
      fc.property(situation, (of) => {
        const table = tableOf(of);
        let before = of.moment;
        for (const at of walk(table, of.moment, of.moment + 2 * DAY, 200).found) {
          expect(at).toBeGreaterThan(before);
          expect(Number.isInteger(at / 1_000)).toBe(true);
          expect(table.previous(at)).toBe(at);
          expect(table.next(at - 1)).toBe(at);
          const earlier = table.previous(at - 1);
          expect(earlier === null || earlier < at).toBe(true);
          if (before !== of.moment) expect(earlier).toBe(before);
          before = at;
        }
      }),
      { numRuns: 300 },
    );
  });

  it('are as many as are counted', () => {
    fc.assert(
      fc.property(situation, value(0, 4_000), value(0, 4_000), (of, first, second) => {
        const table = tableOf(of);
        const middle = of.moment + first * MINUTE;
        const until = middle + second * MINUTE;
        const { found, whole } = walk(table, of.moment, until, 5_000);
        if (whole) expect(table.count(of.moment, until)).toBe(found.length);
        const parts = table.count(of.moment, middle) + table.count(middle, until);
        expect(table.count(of.moment, until)).toBe(parts);
      }),
      { numRuns: 300 },
    );
  });

  it('are the same in one stretch as in two', () => {
    fc.assert(
      fc.property(situation, value(0, 2_880), (of, minutesLater) => {
        const middle = of.moment + minutesLater * MINUTE;
        const until = of.moment + 3 * DAY;
        const whole = walk(tableOf(of), of.moment, until, 20_000).found;
        const first = walk(tableOf(of), of.moment, middle, 20_000).found;
        const second = walk(tableOf(of), middle, until, 20_000 - first.length).found;
        expect([...first, ...second]).toEqual(whole);
      }),
      { numRuns: 100 },
    );
  });

  it('match the wall clock, or say what they were shifted from', () => {
    fc.assert(
      fc.property(situation, (of) => {
        const table = tableOf(of);
        const cron = parseCron(of.expression);
        for (const at of walk(table, of.moment, of.moment + 2 * DAY, 100).found) {
          if (cron.matches(wallClock(of.timezone, at))) continue;
          expect(table.note(at)).toMatch(/^shifted from /);
          expect(of.dst.gap).toBe('shift');
        }
      }),
      { numRuns: 300 },
    );
  });

  it('are every real moment that matches when the hour is left open, whatever the policy', () => {
    const open = fc
      .tuple(plain(0, 59), fc.constantFrom('*', '*/1', '0-23'), weekday)
      .map(([m, h, w]) => `${m} ${h} * * ${w}`)
      .filter(isTaken);
    fc.assert(
      fc.property(wholeMinutes, open, (of, text) => {
        const cron = parseCron(text);
        const until = of.moment + DAY;
        const wanted: number[] = [];
        for (let at = of.moment + MINUTE; at <= until; at += MINUTE) {
          if (cron.matches(wallClock(of.timezone, at))) wanted.push(at);
        }
        expect(walk(tableOf({ ...of, expression: text }), of.moment, until, 2_000).found).toEqual(wanted);
      }),
      { numRuns: 20 },
    );
  });
});

describe('occurrences of any expression at any time', () => {
  const anywhere = fc.record({
    expression,
    dst,
    timezone: fc.constantFrom('UTC', ...CHANGES.map(([zone]) => zone)),
    moment: value(Date.UTC(1970, 0), Date.UTC(2070, 0)),
  });

  it('are found, or found not to be, and nothing lies between a moment and the next one', () => {
    fc.assert(
      fc.property(anywhere, (of) => {
        const table = tableOf(of);
        const next = table.next(of.moment);
        if (next === null) return expect(of.dst.gap).toBe('skip');
        expect(next).toBeGreaterThan(of.moment);
        expect(table.count(of.moment, next)).toBe(1);
        expect(table.count(of.moment, next - 1)).toBe(0);
        const previous = table.previous(of.moment);
        if (previous !== null) expect(table.count(previous, of.moment)).toBe(0);
      }),
      { numRuns: 300 },
    );
  });
});
