import type { EndState } from '../core/job.js';
import { type ColumnOf, insertMoved } from './job-columns.js';

/**
 * The parts shared by all statements that end jobs (a report, a cancel, an expiry, a refusal): they move the row to
 * history and append the tally.
 *
 * Anything that must follow an end in the same transaction is added here, as a data-modifying part that reads from
 * `ended`. It is fenced by that, because `ended` has no rows when the term is over.
 */

/** A job that has ended, and how. */
export interface EndedJob {
  readonly id: string;
  readonly tenant: string;
  readonly state: EndState;
  /** What events tell of it besides; missing if whoever ended it tells that itself. */
  readonly task?: string | null;
  readonly queueName?: string | null;
  readonly schedule?: string | null;
  /** The reason as JSON. */
  readonly error?: string | null;
}

interface End {
  readonly from: 'jobs' | 'later';
  /** The fenced part of the WITH that deleted the rows from `from`; they are called `m`. */
  readonly rows: string;
  /** The moment of the end. */
  readonly at: string;
  /** How the job ended. */
  readonly state: string;
  /** Values of the other columns of history that the old row lacks or that change. */
  readonly set: { readonly [N in Exclude<ColumnOf<'job_history'>, 'state' | 'finished_at'>]?: string };
}

/** Parts of a WITH that end jobs; the part `ended` returns their ids, tenants, states and schedules. */
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
