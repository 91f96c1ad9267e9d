import { catchUp, type OccurrenceRange } from '../core/schedule/catch-up.js';
import { jitterOf } from '../core/schedule/jitter.js';
import type { ParsedSchedule } from '../core/schedule-definition.js';
import { uuidv7 } from '../core/uuid.js';
import type { Move, OccurrenceRow } from '../store/fire-occurrences.js';
import type { ScheduleRow } from '../store/schedules.js';
import { type LoadedRun, startDelayMs } from './scheduled-runs.js';

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
  /** What it runs. */
  readonly run: LoadedRun;
  readonly previous: Previous;
  readonly now: number;
  /** How far ahead occurrences are decided, where `overlap` is `allow`. */
  readonly aheadMs: number;
  /** The most occurrences that get a job. */
  readonly max: number;
  /** False decides occurrences whose moment has passed even if their jitter has not, because the definition changes. */
  readonly heedJitter?: boolean;
}

/** What can be run. */
export type GoodRun = Exclude<LoadedRun, { readonly kind: 'refused' }>;

/** A run to be made. */
export interface PlannedRun {
  /** The id of its job; of a workflow or batch, of the job by which it is judged whether it started in time. */
  readonly id: string;
  /** The id of the workflow or batch; null for a job. */
  readonly runId: string | null;
  readonly at: number;
  readonly runAt: number;
  readonly run: GoodRun;
}

/** A run that was made before. */
export interface RunIds {
  readonly job: string;
  readonly workflow: string | null;
  readonly batch: string | null;
}

/** What is written for one schedule. */
export interface FiringPlan {
  readonly schedule: ScheduleRow;
  readonly move: Move;
  readonly rows: readonly OccurrenceRow[];
  readonly runs: readonly PlannedRun[];
  /** The run to cancel first. */
  readonly cancel: RunIds | null;
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
  return firesAhead(parsed) ? due - FIRE_AHEAD_MS : due;
}

/** Whether occurrences get their runs before they are due. A workflow or a batch could not be withdrawn as a job can. */
function firesAhead({ overlap, work }: ParsedSchedule): boolean {
  return overlap === 'allow' && work.kind === 'job';
}

/** Decides every occurrence that is due by now, and, where overlaps of jobs are allowed, those a few seconds ahead. */
export function planFiring(request: FiringRequest): FiringPlan {
  const { schedule, parsed, run, now } = request;
  const due = occurrencesDue(request);
  const { runs: ats, waiting, skipped } = decideOverlap(request, due.run);
  const runs =
    run.kind === 'refused' ? [] : ats.map((at) => planRun(run, at, dueAt(schedule, parsed, at), now));
  const last = runs.at(-1);
  return {
    schedule,
    move: {
      id: schedule.id,
      version: schedule.version,
      from: schedule.watermark,
      watermark: due.watermark,
      fireAt: fireAtOf(schedule, parsed, due.next),
      lastRun: last ? idsOf(last) : null,
    },
    rows: [
      ...due.passedOver.map((range) => passedOverRow(schedule, range, 'missed', 'downtime')),
      ...skipped.map((at) => row(schedule, at, { state: 'skipped', reason: 'overlap' })),
      ...waiting.map((at) =>
        row(schedule, at, { state: 'waiting', reason: 'overlap', lateAfter: parsed.lateAfterMs }),
      ),
      ...(run.kind === 'refused' ? ats.map((at) => refusedRow(schedule, at, run.reason)) : []),
      ...runs.map((each) => ranRow(schedule, parsed, each, now)),
    ],
    runs,
    cancel:
      parsed.overlap === 'cancel-previous' && request.previous.lives && runs.length > 0
        ? previousRun(schedule)
        : null,
  };
}

/** A run for an occurrence. */
export function planRun(run: GoodRun, at: number, runAt: number, now: number): PlannedRun {
  return { id: uuidv7(now), runId: run.kind === 'job' ? null : uuidv7(now), at, runAt, run };
}

/** The ids of a planned run. */
export function idsOf({ id, runId, run }: PlannedRun): RunIds {
  const workflow = run.kind === 'workflow' ? runId : null;
  return { job: id, workflow, batch: run.kind === 'batch' ? runId : null };
}

function previousRun({
  last_job: job,
  last_workflow: workflow,
  last_batch: batch,
}: ScheduleRow): RunIds | null {
  return job === null ? null : { job, workflow, batch };
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
  const horizon = now + (firesAhead(parsed) ? aheadMs : 0);
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
    workflow: null,
    batch: null,
    lateAfter: null,
    until: null,
    count: 1,
    judgeAt: null,
    ...rest,
  };
}

/** The ledger's row of an occurrence that has a run. */
export function ranRow(
  schedule: ScheduleRow,
  parsed: ParsedSchedule,
  planned: PlannedRun,
  now: number,
  rest: Partial<OccurrenceRow> = {},
): OccurrenceRow {
  const judgeAt = judgeAtOf(parsed, planned, now);
  return row(schedule, planned.at, { ...idsOf(planned), lateAfter: parsed.lateAfterMs, judgeAt, ...rest });
}

/** When it is judged whether a run started in time; null if that cannot be said. */
export function judgeAtOf(
  { lateAfterMs }: ParsedSchedule,
  { runAt, run }: PlannedRun,
  now: number,
): number | null {
  const delayMs = startDelayMs(run);
  return delayMs === null ? null : Math.max(now, runAt + delayMs + lateAfterMs);
}

/** The ledger's row of an occurrence whose run cannot be made; a backfill can run it later. */
function refusedRow(schedule: ScheduleRow, at: number, reason: string): OccurrenceRow {
  return row(schedule, at, { state: 'missed', reason });
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
