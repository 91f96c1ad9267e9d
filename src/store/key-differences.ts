import type { RowOf } from './job-columns.js';
import type { JobRow } from './job-row.js';

/** In which fields a submission differs from the job that has its key. */

type PlainColumn =
  | 'queue'
  | 'task'
  | 'rank'
  | 'run_at'
  | 'created_at'
  | 'start_before'
  | 'max_attempts'
  | 'max_losses'
  | 'at_most_once'
  | 'timeout_ms'
  | 'concurrency_key'
  | 'backoff';

/** A job as a submission with its key is compared with it. */
export interface Compared extends RowOf<'jobs', PlainColumn> {
  readonly started: boolean;
  readonly ended: boolean;
  readonly held: boolean;
  /** JSON is compared as text: other blanks or another order of fields are a difference. */
  readonly same_payload: boolean;
  readonly same_target: boolean;
  readonly same_requires: boolean;
}

interface Said {
  readonly row: JobRow;
  readonly held: boolean;
}

/** A job that has not been stored yet as another with its key is compared with it; it has the values of `values`. */
export function sameAsRow(values: Said, other: Said, held: boolean): Compared {
  const { definition, payload } = values.row;
  return {
    ...definition,
    ...{ started: false, ended: false, held },
    same_payload: payload === other.row.payload,
    same_target: definition.target === other.row.definition.target,
    same_requires: definition.requires === other.row.definition.requires,
  };
}

/** The names of the fields of the submission that differ, in the order of the documentation. */
export function differences(job: Compared, said: Said, now: number): string[] {
  const { definition } = said.row;
  const differs = (...names: Exclude<PlainColumn, 'run_at' | 'created_at'>[]) =>
    names.some((name) => job[name] !== definition[name]);
  const fields: Readonly<Record<string, boolean>> = {
    task: differs('task'),
    target: !job.same_target,
    payload: !job.same_payload,
    runAt: !isSameTime(job, definition, now),
    queue: differs('queue'),
    priority: differs('rank'),
    retry: differs('max_attempts', 'max_losses', 'backoff'),
    timeout: differs('timeout_ms'),
    delivery: differs('at_most_once'),
    concurrencyKey: differs('concurrency_key'),
    requires: !job.same_requires,
    startBefore: differs('start_before'),
    hold: job.held !== said.held,
  };
  return Object.keys(fields).filter((field) => fields[field]);
}

/**
 * Whether a job is due when a submission wants it: at the same moment, or as long after being submitted, because the
 * same `delay` said again means a later moment. A replaced job keeps the time of its creation, so the length of its delay
 * is not known. Of a job that has started the time is past, and what is due is due.
 */
function isSameTime(job: Compared, said: Pick<Compared, 'run_at' | 'created_at'>, now: number): boolean {
  if (job.started || job.run_at === said.run_at) return true;
  if (job.run_at - job.created_at === said.run_at - said.created_at) return true;
  return job.run_at <= now && said.run_at <= now;
}
