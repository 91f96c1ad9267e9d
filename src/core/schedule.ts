import type { Dst } from './schedule/timetable.js';
import type { Shape } from './schemas/object.js';
import type * as schedule from './schemas/schedule.js';

/** The words of a schedule: what people write about one. Its shape is that of the schema that checks it. */

export const OVERLAPS = ['allow', 'skip', 'queue', 'cancel-previous'] as const;
/** What becomes of an occurrence that is due while the job of the one before still lives. */
export type Overlap = (typeof OVERLAPS)[number];

export const DST_GAPS = ['shift', 'skip'] as const;
export const DST_OVERLAPS = ['first', 'last', 'both'] as const;
export const CATCH_UPS = ['none', 'latest', 'all'] as const;

/** A schedule as people write it, apart from its name. Exactly one of `cron`, `every` and `at` is given. */
export type ScheduleDefinition = Shape<typeof schedule.ScheduleDefinition>;

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
  'payload',
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
