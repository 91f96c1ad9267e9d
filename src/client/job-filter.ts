import { momentOf, withoutUndefined } from '../core/build-submission.js';
import { parseDuration } from '../core/duration.js';
import type { JobState } from '../core/job.js';
import type { OptionNames } from '../core/known-options.js';
import { scalarText } from '../core/payload-filter.js';
import type { JobFilter } from '../core/wire.js';

/** The filters of the list of jobs; moments may be dates, and texts such as `2h` mean so long ago. */
export interface JobFilterOptions extends Omit<JobFilter, 'state' | 'since' | 'until'> {
  /** Only jobs in this state, or in one of these. */
  readonly state?: JobState | readonly JobState[];
  /** Only jobs that were created at this moment or later. */
  readonly since?: string | Date;
  /** Only jobs that were created before this moment. */
  readonly until?: string | Date;
}

export const JOB_FILTER_OPTIONS: OptionNames<JobFilterOptions> = {
  state: true,
  task: true,
  queue: true,
  key: true,
  keyPrefix: true,
  worker: true,
  schedule: true,
  workflow: true,
  batch: true,
  since: true,
  until: true,
  errorCode: true,
  fingerprint: true,
  minAttempts: true,
  maxAttempts: true,
  payload: true,
};

/** The filter as the API takes it in a body. */
export function filterOf({ state, since, until, ...rest }: JobFilterOptions): JobFilter {
  return {
    ...(state !== undefined && { state: typeof state === 'string' ? state : state.join(',') }),
    ...withoutUndefined(rest),
    ...(since !== undefined && { since: momentOf(since, 'since') }),
    ...(until !== undefined && { until: momentOf(until, 'until') }),
  };
}

/** The filter as the API takes it in a query. */
export function filterQuery(options: JobFilterOptions): Readonly<Record<string, string>> {
  const { payload = {}, ...rest } = filterOf(options);
  return Object.fromEntries([
    ...Object.entries(rest).map(([name, value]) => [name, String(value)]),
    ...Object.entries(payload).map(([path, value]) => [`payload.${path}`, scalarText(value)]),
  ]);
}

/** The filter with moments instead of durations, which would mean other jobs in every request that goes on with them. */
export function fixedFilter(options: JobFilterOptions, now: number): JobFilterOptions {
  const { since, until } = filterOf(options);
  return {
    ...options,
    ...(since !== undefined && { since: fixedMoment(since, now) }),
    ...(until !== undefined && { until: fixedMoment(until, now) }),
  };
}

function fixedMoment(text: string, now: number): string {
  const ago = parseDuration(text);
  return ago === null ? text : new Date(Math.max(0, now - ago)).toISOString();
}
