import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CatchUp, catchUp } from './catch-up.js';
import { type Timetable, timetable } from './timetable.js';

const OPEN = { startAt: null, endAt: null };
const MINUTE = 60_000;
const NOON = Date.UTC(2026, 5, 1, 12);
const everyMinute = timetable({ kind: 'every', everyMs: MINUTE, from: NOON - 1_000 * MINUTE }, OPEN);

const ago = (minutes: number) => NOON - minutes * MINUTE;

describe('catching up on five minutes', () => {
  const caughtUp = (policy: CatchUp, graceMs = 90_000) =>
    catchUp(everyMinute, policy, ago(5), NOON, graceMs, 100);

  it('runs only what is on time with none', () => {
    expect(caughtUp('none')).toEqual({
      run: [ago(1), NOON],
      passedOver: [{ from: ago(4), until: ago(2), count: 3 }],
      watermark: NOON,
    });
  });

  it('runs the latest of those that were missed, and what is on time', () => {
    expect(caughtUp('latest')).toEqual({
      run: [ago(2), ago(1), NOON],
      passedOver: [{ from: ago(4), until: ago(3), count: 2 }],
      watermark: NOON,
    });
  });

  it('runs all', () => {
    expect(caughtUp('all')).toEqual({
      run: [ago(4), ago(3), ago(2), ago(1), NOON],
      passedOver: [],
      watermark: NOON,
    });
  });

  it('runs all that lie within a time, both ends included', () => {
    expect(caughtUp({ withinMs: 3 * MINUTE })).toEqual({
      run: [ago(3), ago(2), ago(1), NOON],
      passedOver: [{ from: ago(4), until: ago(4), count: 1 }],
      watermark: NOON,
    });
    expect(caughtUp({ withinMs: 3 * MINUTE - 1 }).run).toHaveLength(3);
    expect(caughtUp({ withinMs: 0 }).run).toEqual([ago(1), NOON]);
  });

  it('takes an occurrence as late as the grace for missed, and one due right now never', () => {
    expect(caughtUp('none', MINUTE).run).toEqual([NOON]);
    expect(caughtUp('none', MINUTE + 1).run).toEqual([ago(1), NOON]);
    expect(caughtUp('none', 0).run).toEqual([NOON]);
  });

  it('runs nothing twice and nothing late when nothing was missed', () => {
    expect(catchUp(everyMinute, 'latest', NOON, NOON + 59_999, 30_000, 100)).toEqual({
      run: [],
      passedOver: [],
      watermark: NOON + 59_999,
    });
  });

  it('stays where it is when the clock went back', () => {
    expect(catchUp(everyMinute, 'all', NOON, ago(5), 30_000, 100)).toEqual({
      run: [],
      passedOver: [],
      watermark: NOON,
    });
  });

  it('goes on from the watermark when it was cut', () => {
    const first = catchUp(everyMinute, 'all', ago(5), NOON, 0, 2);
    expect(first).toEqual({ run: [ago(4), ago(3)], passedOver: [], watermark: ago(3) });
    const second = catchUp(everyMinute, 'all', first.watermark, NOON, 0, 3);
    expect(second).toEqual({ run: [ago(2), ago(1), NOON], passedOver: [], watermark: NOON });
  });

  it('runs a single moment that was missed', () => {
    const once = timetable({ kind: 'at', at: ago(60) }, OPEN);
    expect(catchUp(once, 'latest', ago(90), NOON, 30_000, 10).run).toEqual([ago(60)]);
    expect(catchUp(once, 'none', ago(90), NOON, 30_000, 10).passedOver).toEqual([
      { from: ago(60), until: ago(60), count: 1 },
    ]);
    expect(catchUp(once, 'all', ago(60), NOON, 30_000, 10).run).toEqual([]);
  });
});

describe('catching up on a year of seconds', () => {
  const everySecond = timetable(
    {
      kind: 'cron',
      expression: '* * * * * *',
      timezone: 'Europe/Berlin',
      dst: { gap: 'shift', overlap: 'first' },
    },
    OPEN,
  );
  const yearAgo = Date.UTC(2025, 5, 1, 12);

  it.each<[CatchUp, number, number]>([
    ['none', 30, 31_535_970],
    ['latest', 31, 31_535_969],
    [{ withinMs: 60_000 }, 61, 31_535_939],
    ['all', 1_000, 0],
  ])('with %j looks at few of them', (policy, runs, passed) => {
    let asked = 0;
    const watched: Timetable = {
      ...everySecond,
      next: (after) => {
        asked++;
        return everySecond.next(after);
      },
    };
    const { run, passedOver } = catchUp(watched, policy, yearAgo, NOON, 30_000, 1_000);
    expect(run).toHaveLength(runs);
    expect(passedOver.map((range) => range.count)).toEqual(passed > 0 ? [passed] : []);
    expect(asked).toBeLessThan(runs + 5);
  });
});

describe('catching up on anything', () => {
  const policy: fc.Arbitrary<CatchUp> = fc.oneof(
    fc.constantFrom('none' as const, 'latest' as const, 'all' as const),
    fc.record({ withinMs: fc.nat(20_000) }),
  );

  it('decides about every occurrence once, by its policy, in as many calls as it takes', () => {
    fc.assert(
      fc.property(
        policy,
        fc.record({
          every: fc.integer({ min: 1, max: 2_000 }),
          watermark: fc.integer({ min: -5_000, max: 20_000 }),
          now: fc.integer({ min: -5_000, max: 20_000 }),
          grace: fc.nat(5_000),
          max: fc.integer({ min: 1, max: 20 }),
        }),
        (wanted, { every, watermark, now, grace, max }) => {
          const table = timetable({ kind: 'every', everyMs: every, from: 0 }, OPEN);
          const all: number[] = [];
          for (let at = 0; at <= now; at += every) if (at > watermark) all.push(at);
          const isLate = (at: number) => now - at > 0 && now - at >= grace;
          const latest = all.filter(isLate).at(-1);
          const runs = all.filter((at) => {
            if (!isLate(at) || wanted === 'all') return true;
            if (wanted === 'none') return false;
            return wanted === 'latest' ? at === latest : now - at <= wanted.withinMs;
          });
          const run: number[] = [];
          let passed = 0;
          let mark = watermark;
          do {
            const answer = catchUp(table, wanted, mark, now, grace, max);
            expect(answer.run.length).toBeLessThanOrEqual(max);
            expect(answer.watermark).toBeGreaterThanOrEqual(mark);
            run.push(...answer.run);
            for (const range of answer.passedOver) {
              passed += range.count;
              expect(all.filter((at) => at >= range.from && at <= range.until)).toHaveLength(range.count);
            }
            mark = answer.watermark;
          } while (mark < now);
          expect(run).toEqual(runs);
          expect(run.length + passed).toBe(all.length);
        },
      ),
      { numRuns: 500 },
    );
  });
});
