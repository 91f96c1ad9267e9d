import type { EndState } from '../core/job.js';
import { type ColumnOf, insertMoved } from './job-columns.js';

/**
 * The parts shared by all statements that end jobs (a report, a cancel, an expiry, a refusal): they move the row to
 * history, append the tally, and leave a row in the outbox for a step of a workflow, which is all that an end does to its
 * graph.
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
  /** The workflow that it is a step of, and when it ended. */
  readonly workflow?: string | null;
  readonly finishedAt?: number;
  /** The batch that it is a member of. */
  readonly batch?: string | null;
}

/** The steps of workflows among ended jobs. */
export function stepsAmong(jobs: readonly EndedJob[]): EndedStep[] {
  return jobs.flatMap(({ id, workflow, state, finishedAt }) =>
    workflow && finishedAt !== undefined ? [{ job: id, workflow, state, finishedAt }] : [],
  );
}

/** The end of a step of a workflow, which its workflow's executor has to count. */
export interface EndedStep {
  readonly job: string;
  readonly workflow: string;
  readonly state: EndState;
  readonly finishedAt: number;
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
  /** Whether steps of workflows may be skipped by it, which is counted. */
  readonly skips?: true;
}

/** Parts of a WITH that end jobs; the part `ended` returns their ids, tenants, states, schedules and workflows. */
export function endParts({ from, rows, at, state, set, skips }: End): string {
  const skipped = `nullif(count(*) FILTER (WHERE state = 'skipped' AND workflow IS NOT NULL), 0)`;
  return `ended AS (
    ${insertMoved({ from, to: 'job_history', rows, set: { ...set, state, finished_at: at } })}
    RETURNING id, tenant, state, schedule, workflow
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_completed, jobs_failed, jobs_cancelled${skips ? ', steps_skipped' : ''})
    SELECT ${at}, tenant, count(*) FILTER (WHERE state = 'succeeded'),
      count(*) FILTER (WHERE state = 'failed'), count(*) FILTER (WHERE state = 'cancelled')${skips ? `, ${skipped}` : ''}
    FROM ended GROUP BY tenant
  ), left_over AS (
    INSERT INTO punctual.outbox (job, workflow, state, finished_at)
    SELECT id, workflow, state, ${at} FROM ended WHERE workflow IS NOT NULL
    RETURNING job, workflow, state
  )`;
}

/** The steps among the ended jobs, as one JSON text; null if there are none, as mostly. */
export const ENDED_STEPS = `(SELECT json_agg(json_build_array(job, workflow, state)) FROM left_over)`;

/** What `ENDED_STEPS` returned. */
export function endedSteps(text: string | null | undefined, finishedAt: number): EndedStep[] {
  if (!text) return [];
  const rows = JSON.parse(text) as [string, string, EndState][];
  return rows.map(([job, workflow, state]) => ({ job, workflow, state, finishedAt }));
}
