import { parseDuration } from '../core/duration.js';
import type { OptionNames } from '../core/known-options.js';
import type { JobFilter } from '../core/wire.js';
import { momentOf, withoutUndefined } from './task-submission.js';

/** The filters of the list of jobs; moments may be dates, and texts such as `2h` mean so long ago. */
export interface JobFilterOptions extends Omit<JobFilter, 'since' | 'until'> {
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
  worker: true,
  schedule: true,
  since: true,
  until: true,
  errorCode: true,
};

/** The filter as the API takes it. */
export function filterOf({ since, until, ...rest }: JobFilterOptions): JobFilter {
  return {
    ...withoutUndefined(rest),
    ...(since !== undefined && { since: momentOf(since, 'since') }),
    ...(until !== undefined && { until: momentOf(until, 'until') }),
  };
}

/** The filter with moments instead of durations, which would mean other jobs in every request that goes on with them. */
export function fixedFilterOf(options: JobFilterOptions, now: number): JobFilter {
  const { since, until, ...rest } = filterOf(options);
  return {
    ...rest,
    ...(since !== undefined && { since: fixedMoment(since, now) }),
    ...(until !== undefined && { until: fixedMoment(until, now) }),
  };
}

function fixedMoment(text: string, now: number): string {
  const ago = parseDuration(text);
  return ago === null ? text : new Date(Math.max(0, now - ago)).toISOString();
}
