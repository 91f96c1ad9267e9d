import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { jitterOf } from '../core/schedule/jitter.js';
import type { ScheduleDefinition } from '../core/schedule.js';
import { type ParsedSchedule, parseDefinition } from '../core/schedule-definition.js';
import type { ScheduleRow } from '../store/schedules.js';
import { FIRE_AHEAD_MS, type FiringRequest, fireAtFor, planFiring } from './plan-firing.js';
import type { LoadedRun } from './scheduled-runs.js';

const T0 = Date.UTC(2026, 0, 1);
const MINUTE = 60_000;
const LIMITS = {
  now: T0,
  maxPayload: 1_000,
  maxDepth: 8,
  jobTimeout: 1_000,
  maxJobTimeout: 1_000,
  allowCommands: false,
};

function parse(definition: ScheduleDefinition): ParsedSchedule {
  return parseDefinition({ task: 'work', every: '1m', ...definition }, { ...LIMITS, createdAt: T0 });
}

function row(change: Partial<ScheduleRow> = {}): ScheduleRow {
  return {
    id: '0198c0de-0000-7000-8000-000000000001',
    tenant: 'acme',
    name: 'tick',
    definition: '',
    managed_by: null,
    paused: false,
    watermark: T0,
    fire_at: null,
    last_job: null,
    last_workflow: null,
    last_batch: null,
    created_at: T0,
    created_by: 'test',
    changed_at: T0,
    changed_by: 'test',
    version: 1,
    deleted_at: null,
    ...change,
  };
}

/** Fires a schedule every minute at so many seconds after it was made. */
function fire(seconds: number, definition: ScheduleDefinition = {}, change: Partial<FiringRequest> = {}) {
  const parsed = parse(definition);
  const plan = planFiring({
    schedule: row({ last_job: 'previous' }),
    parsed,
    run: parsed.work as LoadedRun,
    previous: { lives: false, awaited: false },
    now: T0 + seconds * 1_000,
    aheadMs: FIRE_AHEAD_MS,
    max: 100,
    ...change,
  });
  const rows = plan.rows.map(
    ({ at, state, reason, count }) =>
      `${(at - T0) / MINUTE} ${state}${reason ? ` ${reason}` : ''}${count > 1 ? ` ×${count}` : ''}`,
  );
  return { plan, rows, watermark: (plan.move.watermark - T0) / MINUTE, fireAt: plan.move.fireAt };
}

describe('in time', () => {
  it('an occurrence gets its job a little ahead, due at its moment', () => {
    const { plan, rows, watermark, fireAt } = fire(55);
    expect(rows).toEqual(['1 ran']);
    expect(plan.runs).toMatchObject([{ at: T0 + MINUTE, runAt: T0 + MINUTE }]);
    expect(watermark).toBe(1);
    expect(fireAt).toBe(T0 + 2 * MINUTE - FIRE_AHEAD_MS);
    expect(plan.move.lastRun).toEqual({ job: plan.runs[0]!.id, workflow: null, batch: null });
  });

  it('nothing is decided too early, and nothing that may not overlap before it is due', () => {
    expect(fire(54).rows).toEqual([]);
    expect(fire(59.999, { overlap: 'skip' }).rows).toEqual([]);
    expect(fire(60, { overlap: 'skip' }).rows).toEqual(['1 ran']);
    expect(fireAtFor(row(), parse({ overlap: 'skip' }), T0)).toBe(T0 + MINUTE);
  });

  it('what is decided already is not decided again', () => {
    expect(fire(61, {}, { schedule: row({ watermark: T0 + MINUTE }) }).rows).toEqual([]);
  });

  it('the last occurrence leaves nothing to look for', () => {
    const endAt = new Date(T0 + MINUTE).toISOString();
    expect(fire(60, { endAt })).toMatchObject({ rows: ['1 ran'], fireAt: null });
  });

  it('jitter moves the job and keeps the moment, and the look comes with it', () => {
    const parsed = parse({ jitter: '50s' });
    const { plan } = fire(119, { jitter: '50s' });
    const [job] = plan.runs;
    expect(job!.at).toBe(T0 + MINUTE);
    expect(job!.runAt - job!.at).toBeGreaterThanOrEqual(0);
    expect(job!.runAt - job!.at).toBeLessThanOrEqual(50_000);
    expect(fireAtFor(row(), parsed, T0)).toBe(job!.runAt - FIRE_AHEAD_MS);
    const early = (job!.runAt - FIRE_AHEAD_MS - 1 - T0) / 1_000;
    expect(fire(early, { jitter: '50s' }).rows).toEqual([]);
  });
});

describe('after downtime', () => {
  it.each<[NonNullable<ScheduleDefinition['catchUp']>, string[]]>([
    ['none', ['1 missed downtime ×5']],
    ['latest', ['1 missed downtime ×4', '5 ran']],
    ['all', ['1 ran', '2 ran', '3 ran', '4 ran', '5 ran']],
    [{ within: '150s' }, ['1 missed downtime ×3', '4 ran', '5 ran']],
  ])('catch-up %j', (catchUp, expected) => {
    expect(fire(5 * 60 + 40, { catchUp })).toMatchObject({ rows: expected, watermark: 5 + 40 / 60 });
  });

  it('one that is still on time is the latest', () => {
    expect(fire(5 * 60 + 10, { catchUp: 'latest' }).rows).toEqual(['1 missed downtime ×4', '5 ran']);
    expect(fire(5 * 60 + 10, { catchUp: 'none' }).rows).toEqual(['1 missed downtime ×4', '5 ran']);
  });

  it('more than fits goes on where it was cut', () => {
    const { rows, watermark, fireAt } = fire(5 * 60 + 40, { catchUp: 'all' }, { max: 2 });
    expect(rows).toEqual(['1 ran', '2 ran']);
    expect(watermark).toBe(2);
    expect(fireAt).toBeLessThan(T0 + 5 * MINUTE);
  });
});

describe('overlap', () => {
  const lives = { previous: { lives: true, awaited: false } };
  it.each<[NonNullable<ScheduleDefinition['overlap']>, string[], string[], string | null]>([
    ['allow', ['1 ran', '2 ran'], ['1 ran', '2 ran'], null],
    ['skip', ['1 skipped overlap', '2 skipped overlap'], ['2 skipped overlap', '1 ran'], null],
    ['queue', ['1 waiting overlap', '2 waiting overlap'], ['2 waiting overlap', '1 ran'], null],
    ['cancel-previous', ['1 skipped overlap', '2 ran'], ['1 skipped overlap', '2 ran'], 'previous'],
  ])('%s', (overlap, whileLiving, afterwards, cancelled) => {
    const busy = fire(120, { overlap, catchUp: 'all' }, lives);
    expect(busy.rows).toEqual(whileLiving);
    expect(busy.plan.cancel?.job ?? null).toBe(cancelled);
    const free = fire(120, { overlap, catchUp: 'all' });
    expect(free.rows).toEqual(afterwards);
    expect(free.plan.cancel).toBeNull();
  });

  it('queue: who comes while others wait, waits behind them', () => {
    const awaited = { previous: { lives: false, awaited: true } };
    expect(fire(60, { overlap: 'queue' }, awaited).rows).toEqual(['1 waiting overlap']);
  });
});

describe('jitter', () => {
  it('is a whole number of milliseconds from 0 to the most allowed, the same each time', () => {
    fc.assert(
      fc.property(fc.uuid(), fc.maxSafeInteger(), fc.nat(86_400_000), (id, at, jitterMs) => {
        const jitter = jitterOf(id, at, jitterMs);
        expect(Number.isInteger(jitter)).toBe(true);
        expect(jitter).toBeGreaterThanOrEqual(0);
        expect(jitter).toBeLessThanOrEqual(jitterMs);
        expect(jitterOf(id, at, jitterMs)).toBe(jitter);
      }),
    );
  });

  it('never changes between versions', () => {
    expect(jitterOf('019a8b5c-0000-7000-8000-000000000001', 1_800_000_000_000, 10_000)).toBe(3_148);
  });

  it.each([
    ['schedules', (n: number) => jitterOf(`schedule-${n}`, 1_800_000_000_000, 9)],
    ['occurrences', (n: number) => jitterOf('schedule', 1_800_000_000_000 + n * 60_000, 9)],
  ])('is even over %s, both ends included', (_, jitter) => {
    const counts = new Array<number>(10).fill(0);
    for (let n = 0; n < 20_000; n++) counts[jitter(n)]!++;
    for (const count of counts) expect(Math.abs(count - 2_000)).toBeLessThan(250);
  });

  it('is nothing when none is allowed', () => {
    expect(jitterOf('schedule', 5, 0)).toBe(0);
  });
});
