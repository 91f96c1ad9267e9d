import type { BatchSubmission } from './batch.js';
import { parseDuration } from './duration.js';
import { type FieldError, invalid } from './errors.js';
import { addAll } from './long-lists.js';
import { parseMoment } from './moment.js';
import type { CatchUp } from './schedule/catch-up.js';
import { parseCron } from './schedule/parse-cron.js';
import { ScheduleError } from './schedule/schedule-error.js';
import { type Timetable, type Timing, timetable } from './schedule/timetable.js';
import { isTimezone } from './schedule/timezone.js';
import {
  DEFAULT_DST,
  DEFAULT_LATE_AFTER,
  DEFAULT_TIMEZONE,
  DEFINITION_FIELDS,
  JOB_FIELDS,
  type Overlap,
  RUN_FIELDS,
  type ScheduleDefinition,
  TIMING_FIELDS,
} from './schedule.js';
import { ScheduleDefinition as Form } from './schemas/schedule.js';
import { readFields } from './schemas/validate.js';
import { completeSubmission, type ParsedSubmission, readJson, type SubmissionContext } from './submission.js';

/**
 * From what a user wrote about a schedule to one that can be fired. The schema that the documentation shows checks the
 * form; here are the rules between fields and the defaults.
 */

const WHAT_RUNS = 'give one of "task", "target", "workflow" and "batch"';
const LEAST_EVERY_MS = 1_000;
/** How many gaps between occurrences are looked at to tell whether a jitter fits into them. */
const GAPS_LOOKED_AT = 20;

/** A schedule that can be fired. */
export interface ParsedSchedule {
  readonly table: Timetable;
  readonly catchUp: CatchUp;
  readonly overlap: Overlap;
  readonly jitterMs: number;
  readonly lateAfterMs: number;
  readonly work: ScheduledWork;
}

/** What an occurrence runs. */
export type ScheduledWork =
  /** Its `runAt` means nothing. */
  | { readonly kind: 'job'; readonly job: ParsedSubmission }
  /** The name of a definition, and the input as JSON text. */
  | { readonly kind: 'workflow'; readonly name: string; readonly input: string | null }
  /** Its members are checked when they are read. */
  | { readonly kind: 'batch'; readonly batch: BatchSubmission };

export interface DefinitionContext extends SubmissionContext {
  /** Where `every` counts from when there is no `startAt`. */
  readonly createdAt: number;
}

/** What was given for each field, whether it has the right form or not. */
type Given = { readonly [K in keyof ScheduleDefinition]?: unknown };

/** Checks a definition; throws INVALID_REQUEST with a pointer to every wrong field. */
export function parseDefinition(definition: unknown, context: DefinitionContext): ParsedSchedule {
  const errors: FieldError[] = [];
  const fields = readFields(Form, definition, '', errors);
  if (!fields) throw invalid(errors);
  const given = definition as Given;
  const table = readTimetable(fields, given, context.createdAt, errors);
  const lateAfterMs = parseDuration(fields.lateAfter ?? DEFAULT_LATE_AFTER)!;
  if (lateAfterMs < 1_000) errors.push({ pointer: '/lateAfter', detail: 'must be at least 1s' });
  const work = readWork(fields, given, context, errors);
  if (!table || errors.length > 0) throw invalid(errors);
  return {
    table,
    catchUp: readCatchUp(fields.catchUp),
    overlap: fields.overlap ?? 'allow',
    jitterMs: parseDuration(fields.jitter ?? '0s')!,
    lateAfterMs,
    work,
  };
}

function readWork(
  fields: ScheduleDefinition,
  given: Given,
  context: DefinitionContext,
  errors: FieldError[],
): ScheduledWork {
  const { workflow: name, batch } = fields;
  const said = RUN_FIELDS.filter((field) => given[field] !== undefined);
  if (said.length === 0) errors.push({ pointer: '/task', detail: WHAT_RUNS });
  if (given.workflow === undefined && given.batch === undefined) {
    // That none is given was said for schedules, which can run more than jobs.
    const seen = said.length === 0 ? { ...given, task: null } : given;
    return { kind: 'job', job: completeSubmission(fields, seen, context, { pointer: '', errors }) };
  }
  if (said.length > 1) errors.push({ pointer: `/${said[1]}`, detail: WHAT_RUNS });
  const runs = given.workflow === undefined ? 'batch' : 'workflow';
  const others: readonly (keyof ScheduleDefinition)[] =
    runs === 'batch' ? [...JOB_FIELDS, 'payload'] : JOB_FIELDS;
  for (const field of others) {
    if (given[field] === undefined) continue;
    errors.push({
      pointer: `/${field}`,
      detail: `does not go together with "${runs}": its jobs say so themselves`,
    });
  }
  if (runs === 'batch') return { kind: 'batch', batch: batch ?? { jobs: [] } };
  const input = readJson(given.payload, context, (detail) => errors.push({ pointer: '/payload', detail }));
  return { kind: 'workflow', name: name ?? '', input: given.payload === undefined ? null : input };
}

/** Checks what depends on the present: that occurrences come, and lie further apart than the jitter moves them. */
export function checkComing(
  { table, jitterMs }: ParsedSchedule,
  definition: ScheduleDefinition,
  now: number,
): void {
  let at = table.next(now);
  // A cron expression or an interval without an end always goes on.
  if (at === null && definition.at !== undefined)
    throw invalid([{ pointer: '/at', detail: 'lies in the past' }]);
  if (at === null) throw invalid([{ pointer: '/endAt', detail: 'lies before the next occurrence' }]);
  for (let looked = 0; looked < GAPS_LOOKED_AT && jitterMs > 0; looked++) {
    const next: number | null = table.next(at);
    if (next === null) return;
    if (jitterMs >= next - at) {
      throw invalid([
        { pointer: '/jitter', detail: 'must be shorter than the time between two occurrences' },
      ]);
    }
    at = next;
  }
}

/** The fields that say when a schedule is due: the part that a preview has too. */
type WhenFields = Pick<
  ScheduleDefinition,
  (typeof TIMING_FIELDS)[number] | 'timezone' | 'dst' | 'startAt' | 'endAt'
>;

/** When something is due that is no schedule yet; its form was checked. An interval counts from `createdAt`. */
export function parseTimetable(fields: WhenFields, createdAt: number): Timetable {
  const errors: FieldError[] = [];
  const table = readTimetable(fields, fields, createdAt, errors);
  if (!table) throw invalid(errors);
  return table;
}

/** Null after saying what is wrong. */
function readTimetable(
  fields: WhenFields,
  given: Given,
  createdAt: number,
  errors: FieldError[],
): Timetable | null {
  const before = errors.length;
  const startAt = fields.startAt === undefined ? null : parseMoment(fields.startAt)!;
  const endAt = fields.endAt === undefined ? null : parseMoment(fields.endAt)!;
  if (startAt !== null && endAt !== null && endAt < startAt) {
    errors.push({ pointer: '/endAt', detail: 'lies before startAt' });
  }
  if (!isTimezone(fields.timezone ?? DEFAULT_TIMEZONE)) {
    const detail = 'must be the IANA name of a time zone, such as Europe/Berlin';
    errors.push({ pointer: '/timezone', detail });
  }
  const kinds = TIMING_FIELDS.filter((name) => given[name] !== undefined);
  if (kinds.length !== 1) {
    const detail = 'give exactly one of "cron", "every" and "at"';
    errors.push({ pointer: `/${kinds[1] ?? 'cron'}`, detail });
    return null;
  }
  const timing = readTiming(fields, startAt, createdAt, errors);
  return timing && errors.length === before ? timetable(timing, { startAt, endAt }) : null;
}

/** Null when the field that says it has the wrong form. */
function readTiming(
  { at, every, cron, timezone = DEFAULT_TIMEZONE, dst }: WhenFields,
  startAt: number | null,
  createdAt: number,
  errors: FieldError[],
): Timing | null {
  if (at !== undefined) return { kind: 'at', at: parseMoment(at)! };
  if (every !== undefined) {
    const everyMs = parseDuration(every)!;
    if (everyMs < LEAST_EVERY_MS) errors.push({ pointer: '/every', detail: 'must be at least 1s' });
    // Without a start it is due for the first time when the interval has passed once.
    return { kind: 'every', everyMs, from: startAt ?? createdAt + everyMs };
  }
  if (cron === undefined) return null;
  try {
    parseCron(cron);
  } catch (error) {
    if (!(error instanceof ScheduleError)) throw error;
    addAll(errors, error.errors);
  }
  const { gap = DEFAULT_DST.gap, overlap = DEFAULT_DST.overlap } = dst ?? {};
  return { kind: 'cron', expression: cron, timezone, dst: { gap, overlap } };
}

function readCatchUp(given: ScheduleDefinition['catchUp'] = 'latest'): CatchUp {
  return typeof given === 'string' ? given : { withinMs: parseDuration(given.within)! };
}

/** The definition with its fields in one order and without those that are left open, so that texts can be compared. */
export function normalise(definition: Readonly<Record<string, unknown>>): ScheduleDefinition {
  return Object.fromEntries(
    DEFINITION_FIELDS.filter((name) => definition[name] !== undefined && definition[name] !== null).map(
      (name) => [name, definition[name]],
    ),
  );
}

/**
 * A definition after a change: fields that are given replace those of before, null takes one away, and a new
 * way to say when it is due takes the place of the old one.
 */
export function changed(
  definition: ScheduleDefinition,
  change: Readonly<Record<string, unknown>>,
): ScheduleDefinition {
  const before: Record<string, unknown> = { ...definition };
  if (TIMING_FIELDS.some((name) => change[name] !== undefined && change[name] !== null)) {
    for (const name of TIMING_FIELDS) delete before[name];
  }
  if (RUN_FIELDS.some((name) => change[name] !== undefined && change[name] !== null)) {
    for (const name of RUN_FIELDS) delete before[name];
  }
  return normalise({ ...before, ...change });
}
