import { catchUp, type OccurrenceRange } from '../core/schedule/catch-up.js';
import { jitterOf } from '../core/schedule/jitter.js';
import type { ParsedSchedule } from '../core/schedule-definition.js';
import type { ParsedSubmission } from '../core/submission.js';
import { uuidv7 } from '../core/uuid.js';
import type { Move, OccurrenceRow } from '../store/fire-occurrences.js';
import type { ScheduleRow } from '../store/schedules.js';

/** Works out what firing a schedule at a moment means, as a pure function, before anything is written. */

/** How long before it is due an occurrence gets its job, so that the job is in memory by then. */
export const FIRE_AHEAD_MS = 5_000;

/** The state of the schedule's previous job. */
export interface Previous {
  /** Whether it has not ended. */
  readonly lives: boolean;
  /** Whether earlier occurrences wait for it to end. */
  readonly awaited: boolean;
}

/** Stands for a schedule without a previous job, and for one to which it does not matter. */
export const NO_PREVIOUS: Previous = { lives: false, awaited: false };

/** What the plan is made from. */
export interface FiringRequest {
  readonly schedule: ScheduleRow;
  readonly parsed: ParsedSchedule;
  readonly previous: Previous;
  readonly now: number;
  /** How far ahead occurrences are decided, where `overlap` is `allow`. */
  readonly aheadMs: number;
  /** The most occurrences that get a job. */
  readonly max: number;
  /** False decides occurrences whose moment has passed even if their jitter has not, because the definition changes. */
  readonly heedJitter?: boolean;
}

/** A job to be made. */
export interface PlannedJob {
  readonly id: string;
  readonly at: number;
  readonly runAt: number;
  readonly submission: ParsedSubmission;
}

/** What is written for one schedule. */
export interface FiringPlan {
  readonly schedule: ScheduleRow;
  readonly move: Move;
  readonly rows: readonly OccurrenceRow[];
  readonly jobs: readonly PlannedJob[];
  /** The job to cancel first. */
  readonly cancel: string | null;
}

/** When an occurrence is due: its moment plus its jitter. */
export function dueAt(
  schedule: { readonly id: string },
  parsed: Pick<ParsedSchedule, 'jitterMs'>,
  at: number,
): number {
  return parsed.jitterMs === 0 ? at : at + jitterOf(schedule.id, at, parsed.jitterMs);
}

/** When the leader has to fire a schedule that is decided up to the watermark; null when no occurrence follows. */
export function fireAtFor(
  schedule: { readonly id: string },
  parsed: ParsedSchedule,
  watermark: number,
): number | null {
  return fireAtOf(schedule, parsed, parsed.table.next(watermark));
}

/** When the leader has to fire a schedule whose next undecided occurrence is given. */
function fireAtOf(
  schedule: { readonly id: string },
  parsed: ParsedSchedule,
  next: number | null,
): number | null {
  if (next === null) return null;
  const due = dueAt(schedule, parsed, next);
  return parsed.overlap === 'allow' ? due - FIRE_AHEAD_MS : due;
}

/** Decides every occurrence that is due by now, and, where overlaps are allowed, those a few seconds ahead. */
export function planFiring(request: FiringRequest): FiringPlan {
  const { schedule, parsed } = request;
  const due = occurrencesDue(request);
  const { runs, waiting, skipped } = decideOverlap(request, due.run);
  const jobs = runs.map((at) => planJob(parsed, at, dueAt(schedule, parsed, at), request.now));
  return {
    schedule,
    move: {
      id: schedule.id,
      version: schedule.version,
      from: schedule.watermark,
      watermark: due.watermark,
      fireAt: fireAtOf(schedule, parsed, due.next),
      lastJob: jobs.at(-1)?.id ?? null,
    },
    rows: [
      ...due.passedOver.map((range) => passedOverRow(schedule, range, 'missed', 'downtime')),
      ...skipped.map((at) => row(schedule, at, { state: 'skipped', reason: 'overlap' })),
      ...waiting.map((at) =>
        row(schedule, at, { state: 'waiting', reason: 'overlap', lateAfter: parsed.lateAfterMs }),
      ),
      ...jobs.map((job) => ranRow(schedule, parsed, job, request.now)),
    ],
    jobs,
    cancel:
      parsed.overlap === 'cancel-previous' && request.previous.lives && jobs.length > 0
        ? schedule.last_job
        : null,
  };
}

/** A job for an occurrence. */
export function planJob({ job }: ParsedSchedule, at: number, runAt: number, now: number): PlannedJob {
  return { id: uuidv7(now), at, runAt, submission: job };
}

interface Due {
  readonly run: readonly number[];
  readonly passedOver: readonly OccurrenceRange[];
  readonly watermark: number;
  /** The first occurrence after the watermark. */
  readonly next: number | null;
}

function occurrencesDue(request: FiringRequest): Due {
  const { schedule, parsed, now, aheadMs, max, heedJitter = true } = request;
  const { table } = parsed;
  const until = heedJitter ? jitterIsOver(schedule, parsed, now) : now;
  const past = occurrencesPast(request, until);
  if (past.watermark < until) return past;
  const run = [...past.run];
  const horizon = now + (parsed.overlap === 'allow' ? aheadMs : 0);
  let { watermark, next } = past;
  while (next !== null && run.length < max && dueAt(schedule, parsed, next) <= horizon) {
    run.push(next);
    watermark = next;
    next = table.next(watermark);
  }
  return { ...past, run, watermark, next };
}

/** Decides the occurrences in (watermark, until] by the catch-up policy. */
function occurrencesPast({ schedule, parsed, max }: FiringRequest, until: number): Due {
  const { table, jitterMs, lateAfterMs } = parsed;
  const { watermark } = schedule;
  const next = table.next(watermark);
  if (next === null || next > until) {
    return { run: [], passedOver: [], watermark: Math.max(watermark, until), next };
  }
  const graceMs = lateAfterMs + jitterMs;
  // An occurrence that is still on time runs in any case. Then it is the latest, so none before it has to run.
  const onTime = (table.previous(until) ?? watermark) > until - graceMs;
  const policy = parsed.catchUp === 'latest' && onTime ? 'none' : parsed.catchUp;
  const past = catchUp(table, policy, watermark, until, graceMs, max);
  return { ...past, next: table.next(past.watermark) };
}

/** The moment up to which every occurrence is due by now, its jitter included. */
function jitterIsOver(schedule: ScheduleRow, parsed: ParsedSchedule, now: number): number {
  let until = now;
  if (parsed.jitterMs === 0) return until;
  for (;;) {
    const last = parsed.table.previous(until);
    if (last === null || last <= schedule.watermark || dueAt(schedule, parsed, last) <= now) return until;
    until = last - 1;
  }
}

interface Overlapping {
  readonly runs: readonly number[];
  readonly waiting: readonly number[];
  readonly skipped: readonly number[];
}

function decideOverlap({ parsed, previous }: FiringRequest, due: readonly number[]): Overlapping {
  const all: Overlapping = { runs: due, waiting: [], skipped: [] };
  switch (parsed.overlap) {
    case 'allow':
      return all;
    case 'cancel-previous':
      // Each would at once be cancelled by the next: only the last is started.
      return { ...all, runs: due.slice(-1), skipped: due.slice(0, -1) };
    case 'skip':
      return previous.lives
        ? { ...all, runs: [], skipped: due }
        : { ...all, runs: due.slice(0, 1), skipped: due.slice(1) };
    case 'queue':
      return previous.lives || previous.awaited
        ? { ...all, runs: [], waiting: due }
        : { ...all, runs: due.slice(0, 1), waiting: due.slice(1) };
  }
}

function row(schedule: ScheduleRow, at: number, rest: Partial<OccurrenceRow>): OccurrenceRow {
  return {
    schedule: schedule.id,
    at,
    byHand: false,
    tenant: schedule.tenant,
    state: 'ran',
    reason: null,
    job: null,
    lateAfter: null,
    until: null,
    count: 1,
    judgeAt: null,
    ...rest,
  };
}

/** The ledger's row of an occurrence that has a job. */
export function ranRow(
  schedule: ScheduleRow,
  parsed: ParsedSchedule,
  job: PlannedJob,
  now: number,
  rest: Partial<OccurrenceRow> = {},
): OccurrenceRow {
  const judgeAt = Math.max(now, job.runAt + parsed.lateAfterMs);
  return row(schedule, job.at, { job: job.id, lateAfter: parsed.lateAfterMs, judgeAt, ...rest });
}

/** The ledger's row of occurrences that were passed over together. */
export function passedOverRow(
  schedule: ScheduleRow,
  range: OccurrenceRange,
  state: 'missed' | 'skipped',
  reason: string,
): OccurrenceRow {
  const { from, until, count } = range;
  return row(schedule, from, { state, reason, count, until: count > 1 ? until : null });
}
