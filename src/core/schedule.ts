import type { BatchSubmission } from './batch.js';
import type { Duration } from './duration.js';
import type { JobTemplate } from './job.js';
import type { Dst } from './schedule/timetable.js';

/** The words of a schedule: what people write about one, in the shape of the schema that checks it. */

export const OVERLAPS = ['allow', 'skip', 'queue', 'cancel-previous'] as const;
/** What becomes of an occurrence that is due while the job of the one before still lives. */
export type Overlap = (typeof OVERLAPS)[number];

export const DST_GAPS = ['shift', 'skip'] as const;
export const DST_OVERLAPS = ['first', 'last', 'both'] as const;
export const CATCH_UPS = ['none', 'latest', 'all'] as const;

/** When a schedule is due. Exactly one of `cron`, `every` and `at` is given. */
export interface ScheduleTimes {
  /** Five fields, or six with seconds first. */
  readonly cron?: string;
  /** The interval, at least 1 s. */
  readonly every?: Duration;
  /** Once, at this time (RFC 3339). */
  readonly at?: string;
  /** The IANA name of the zone of `cron`; default `UTC`. */
  readonly timezone?: string;
  /** What happens to times that a change of the clocks leaves out or repeats. */
  readonly dst?: {
    readonly gap?: (typeof DST_GAPS)[number];
    readonly overlap?: (typeof DST_OVERLAPS)[number];
  };
  readonly startAt?: string;
  readonly endAt?: string;
}

/** A schedule as people write it, apart from its name. It runs one of `task`, `target`, `workflow` and `batch`. */
export interface ScheduleDefinition extends ScheduleTimes, JobTemplate {
  /** The name of the workflow definition that each occurrence starts, with `payload` as its input. */
  readonly workflow?: string;
  /** The jobs that each occurrence starts together. */
  readonly batch?: BatchSubmission;
  /** Each occurrence is delayed by a random time up to this. */
  readonly jitter?: Duration;
  /** Which occurrences still run after downtime; default `latest`. */
  readonly catchUp?: (typeof CATCH_UPS)[number] | { readonly within: Duration };
  /** What happens to an occurrence that is due before the job of the previous one has ended; default `allow`. */
  readonly overlap?: Overlap;
  /** A start later than this counts as late; default 30 s. */
  readonly lateAfter?: Duration;
}

export const TIMING_FIELDS = ['cron', 'every', 'at'] as const;
/** Everything that a definition may hold, in the order in which it is stored. */
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
  'task',
  'target',
  'workflow',
  'batch',
  'payload',
  'queue',
  'priority',
  'retry',
  'timeout',
  'delivery',
  'concurrencyKey',
  'requires',
] as const satisfies readonly (keyof ScheduleDefinition)[];

/** What says what a schedule runs. */
export const RUN_FIELDS = ['task', 'target', 'workflow', 'batch'] as const;
/** What a definition says of a single job, and of nothing else. */
export const JOB_FIELDS = [
  'queue',
  'priority',
  'retry',
  'timeout',
  'delivery',
  'concurrencyKey',
  'requires',
] as const satisfies readonly (keyof ScheduleDefinition)[];

/** When an occurrence has run too late for the promise that Punctual makes. */
export const DEFAULT_LATE_AFTER = '30s';
export const DEFAULT_TIMEZONE = 'UTC';
export const DEFAULT_DST: Dst = { gap: 'shift', overlap: 'first' };
