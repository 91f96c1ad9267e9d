import type { EndState } from '../core/job.js';
import { type ColumnOf, insertMoved } from './job-columns.js';

/**
 * The one way out. Whatever ends a job (a report, a cancel, an expiry, a refusal) moves its row to history and appends
 * the tally with the parts below.
 *
 * What follows from an end in the same transaction joins here: a data-modifying part that feeds on `ended`, and is
 * fenced by that, because `ended` has no rows when the term is over.
 */

/** A job that has ended, and how. */
export interface EndedJob {
  readonly id: string;
  readonly tenant: string;
  readonly state: EndState;
}

interface End {
  readonly from: 'jobs' | 'later';
  /** The fenced part of the WITH that has taken the rows out of `from`; they are called `m`. */
  readonly rows: string;
  /** The moment of the end. */
  readonly at: string;
  /** How the job ended. */
  readonly state: string;
  /** Other columns of history that do not move with the job, or that change on the way. */
  readonly set: { readonly [N in Exclude<ColumnOf<'job_history'>, 'state' | 'finished_at'>]?: string };
}

/** Parts of a WITH that end jobs; the part named `ended` tells which, how, and which schedule made them. */
export function endParts({ from, rows, at, state, set }: End): string {
  return `ended AS (
    ${insertMoved({ from, to: 'job_history', rows, set: { ...set, state, finished_at: at } })}
    RETURNING id, tenant, state, schedule
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_completed, jobs_failed, jobs_cancelled)
    SELECT ${at}, tenant, count(*) FILTER (WHERE state = 'succeeded'),
      count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'cancelled')
    FROM ended GROUP BY tenant
  )`;
}
