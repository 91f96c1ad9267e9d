import { parseDuration } from './duration.js';
import { type FieldError, invalid, PunctualError } from './errors.js';
import { FieldReader, isPlainObject } from './fields.js';
import type { Delivery, Labels, RetryInput, Target } from './job.js';
import { addAll } from './long-lists.js';
import type { CatchUp } from './schedule/catch-up.js';
import { parseCron } from './schedule/parse-cron.js';
import { ScheduleError } from './schedule/schedule-error.js';
import { type Dst, type Timetable, type Timing, timetable } from './schedule/timetable.js';
import { isTimezone } from './schedule/timezone.js';
import { type ParsedSubmission, parseSubmission, type SubmissionContext } from './submission.js';

/** From what a user wrote about a schedule to one that can be fired: every default filled in, everything checked. */

export const OVERLAPS = ['allow', 'skip', 'queue', 'cancel-previous'] as const;
/** What becomes of an occurrence that is due while the job of the one before still lives. */
export type Overlap = (typeof OVERLAPS)[number];

export const DST_GAPS = ['shift', 'skip'] as const;
export const DST_OVERLAPS = ['first', 'last', 'both'] as const;
export const CATCH_UPS = ['none', 'latest', 'all'] as const;

/** A schedule as people write it, apart from its name. Exactly one of `cron`, `every` and `at` is given. */
export interface ScheduleDefinition {
  readonly cron?: string;
  readonly every?: string;
  readonly at?: string;
  readonly timezone?: string;
  readonly dst?: { readonly gap?: Dst['gap']; readonly overlap?: Dst['overlap'] };
  readonly startAt?: string;
  readonly endAt?: string;
  readonly jitter?: string;
  readonly catchUp?: (typeof CATCH_UPS)[number] | { readonly within: string };
  readonly overlap?: Overlap;
  readonly lateAfter?: string;
  readonly task?: string;
  readonly target?: Target;
  readonly payload?: unknown;
  readonly queue?: string;
  readonly priority?: number;
  readonly retry?: RetryInput;
  readonly timeout?: string;
  readonly delivery?: Delivery;
  readonly concurrencyKey?: string;
  readonly requires?: Labels;
}

export const TIMING_FIELDS = ['cron', 'every', 'at'] as const;
/** What a schedule says about the jobs that it makes; the same fields and rules as in a submission. */
export const JOB_FIELDS = [
  'task',
  'target',
  'payload',
  'queue',
  'priority',
  'retry',
  'timeout',
  'delivery',
  'concurrencyKey',
  'requires',
] as const;
/** Everything that a definition may hold. */
export const DEFINITION_FIELDS = [
  ...TIMING_FIELDS,
  'timezone',
  'dst',
  'startAt',
  'endAt',
  'jitter',
  'catchUp',
  'overlap',
  'lateAfter',
  ...JOB_FIELDS,
] as const;

/** When an occurrence has run too late for the promise that Punctual makes. */
export const DEFAULT_LATE_AFTER = '30s';
export const DEFAULT_TIMEZONE = 'UTC';
export const DEFAULT_DST: Dst = { gap: 'shift', overlap: 'first' };

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
  /** The job of an occurrence; its `runAt` means nothing. */
  readonly job: ParsedSubmission;
}

export interface DefinitionContext extends SubmissionContext {
  /** Where `every` counts from when there is no `startAt`. */
  readonly createdAt: number;
}

/** Checks a definition; throws INVALID_REQUEST with a pointer to every wrong field. */
export function parseDefinition(definition: unknown, context: DefinitionContext): ParsedSchedule {
  const errors: FieldError[] = [];
  const fields = new FieldReader(definition, '', DEFINITION_FIELDS, errors);
  const { timing, startAt, endAt } = readWhen(fields, definition, context.createdAt);
  const jitterMs = fields.duration('jitter') ?? 0;
  const catchUp = readCatchUp(fields);
  const overlap = fields.oneOf('overlap', OVERLAPS) ?? 'allow';
  const lateAfterMs = fields.duration('lateAfter') ?? parseDuration(DEFAULT_LATE_AFTER)!;
  if (lateAfterMs < 1_000) fields.wrong('lateAfter', 'must be at least 1s');
  const job = readJob(definition, context, errors);
  if (errors.length > 0 || !timing || !job) throw invalid(errors);
  const table = timetable(timing, { startAt, endAt });
  return { table, catchUp, overlap, jitterMs, lateAfterMs, job };
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

interface When {
  readonly timing: Timing | null;
  readonly startAt: number | null;
  readonly endAt: number | null;
}

/** What says when a schedule is due: the part that a preview has too. */
export function readWhen(fields: FieldReader, input: unknown, createdAt: number): When {
  const startAt = fields.moment('startAt') ?? null;
  const endAt = fields.moment('endAt') ?? null;
  if (startAt !== null && endAt !== null && endAt < startAt) fields.wrong('endAt', 'lies before startAt');
  const timezone = readTimezone(fields);
  const dst = readDst(fields);
  const given = TIMING_FIELDS.filter((name) => fields.has(name));
  if (isPlainObject(input) && given.length !== 1) {
    fields.wrong(given[1] ?? 'cron', 'give exactly one of "cron", "every" and "at"');
    return { timing: null, startAt, endAt };
  }
  const before = fields.errors.length;
  const timing = readTiming(fields, given[0], { timezone, dst, startAt, createdAt });
  return { timing: fields.errors.length > before ? null : timing, startAt, endAt };
}

function readTiming(
  fields: FieldReader,
  kind: (typeof TIMING_FIELDS)[number] | undefined,
  rest: { timezone: string; dst: Dst; startAt: number | null; createdAt: number },
): Timing | null {
  if (kind === 'at') return { kind, at: fields.moment('at') ?? 0 };
  if (kind === 'every') {
    const everyMs = fields.duration('every') ?? LEAST_EVERY_MS;
    if (everyMs < LEAST_EVERY_MS) fields.wrong('every', 'must be at least 1s');
    // Without a start it is due for the first time when the interval has passed once.
    return { kind, everyMs, from: rest.startAt ?? rest.createdAt + everyMs };
  }
  const expression = fields.text('cron', 256);
  if (expression === undefined) return null;
  try {
    parseCron(expression);
  } catch (error) {
    if (!(error instanceof ScheduleError)) throw error;
    addAll(fields.errors, error.errors);
  }
  return { kind: 'cron', expression, timezone: rest.timezone, dst: rest.dst };
}

function readTimezone(fields: FieldReader): string {
  const timezone = fields.text('timezone', 128) ?? DEFAULT_TIMEZONE;
  if (!isTimezone(timezone))
    fields.wrong('timezone', 'must be the IANA name of a time zone, such as Europe/Berlin');
  return timezone;
}

function readDst(fields: FieldReader): Dst {
  const dst = fields.nested('dst', ['gap', 'overlap']);
  return {
    gap: dst?.oneOf('gap', DST_GAPS) ?? DEFAULT_DST.gap,
    overlap: dst?.oneOf('overlap', DST_OVERLAPS) ?? DEFAULT_DST.overlap,
  };
}

function readCatchUp(fields: FieldReader): CatchUp {
  if (isPlainObject(fields.raw('catchUp'))) {
    const within = fields.nested('catchUp', ['within'])!;
    within.require('within');
    return { withinMs: within.duration('within') ?? 0 };
  }
  const policy = fields.raw('catchUp');
  if (policy === undefined) return 'latest';
  if ((CATCH_UPS as readonly unknown[]).includes(policy)) return policy as (typeof CATCH_UPS)[number];
  fields.wrong('catchUp', 'must be "none", "latest", "all" or {"within": a duration such as "6h"}');
  return 'latest';
}

/** The job part obeys the very rules of a submission; its errors join the others. */
function readJob(
  definition: unknown,
  context: SubmissionContext,
  errors: FieldError[],
): ParsedSubmission | null {
  if (!isPlainObject(definition)) return null;
  const job = Object.fromEntries(
    JOB_FIELDS.filter((name) => definition[name] !== undefined).map((name) => [name, definition[name]]),
  );
  try {
    return parseSubmission(job, context);
  } catch (error) {
    if (!(error instanceof PunctualError) || error.code !== 'INVALID_REQUEST') throw error;
    addAll(errors, error.errors);
    return null;
  }
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
  if (change.task !== undefined && change.task !== null) delete before.target;
  if (change.target !== undefined && change.target !== null) delete before.task;
  return normalise({ ...before, ...change });
}
