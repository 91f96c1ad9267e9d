import type { BatchState } from '../core/batch.js';
import type { Queryable } from './database.js';
import { lockedInHistory, takenFromHistory } from './ended-places.js';
import { insertMoved } from './job-columns.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { newSize, WITH_LAST_ATTEMPT } from './place-jobs.js';
import { selectWaiting, type Waiting } from './read-backlog.js';
import { earliestEnd } from './read-job.js';

/** Ends of batches, what is noted about them before, and retries. */

/** Only a batch none of whose members waits or runs has ended. One that fails with a reason could not start in time. */
const END_BATCH = leaderStatement(
  'end-batch',
  `ended AS (
    UPDATE punctual.batches b SET state = $5::text, ended_at = $6::bigint, error = $7::json
    WHERE b.id = $4::uuid AND b.ended_at IS NULL AND ${WHILE_TERM_LASTS}
      AND NOT EXISTS (SELECT 1 FROM punctual.jobs j WHERE j.id = ANY(b.members))
      AND NOT EXISTS (SELECT 1 FROM punctual.later l WHERE l.id = ANY(b.members))
    RETURNING b.id, b.tenant
  ), counted AS (
    INSERT INTO punctual.tallies
      (at, tenant, batches_succeeded, batches_failed, batches_cancelled, batches_timed_out)
    SELECT $6::bigint, e.tenant, ($5::text = 'succeeded')::int, ($5::text = 'failed')::int,
      ($5::text = 'cancelled')::int, ($5::text = 'failed' AND $7::json IS NOT NULL)::int
    FROM ended e
  ), answer AS (SELECT id FROM ended)`,
);

/** Ends a batch whose members have all ended; answers whether it did, which it does once. */
export async function endBatch(
  db: Queryable,
  term: TermKey,
  id: string,
  state: BatchState,
  error: string | null,
  now: number,
): Promise<boolean> {
  return (await runAsLeader(db, term, END_BATCH, [id, state, now, error])).length > 0;
}

const CANCEL_BATCH = leaderStatement(
  'cancel-batch',
  `answer AS (
    UPDATE punctual.batches b SET cancelled_at = coalesce(b.cancelled_at, $5::bigint)
    WHERE b.id = $4::uuid AND b.ended_at IS NULL AND ${WHILE_TERM_LASTS}
    RETURNING b.id
  )`,
);

/** Notes that a running batch was cancelled, for this leader and the next. */
export async function cancelBatch(db: Queryable, term: TermKey, id: string, now: number): Promise<void> {
  await runAsLeader(db, term, CANCEL_BATCH, [id, now]);
}

/**
 * Moves all members back to `later`, whatever they came to, or does nothing. What each has done stays on record, and the
 * fences grow.
 */
const RETRY_BATCH = leaderStatement(
  'retry-batch',
  `${lockedInHistory(
    (table) => `SELECT h.id FROM punctual.${table} h
    WHERE h.tenant = $4::text AND h.id = ANY($6::uuid[]) AND h.finished_at >= $7::bigint
      AND NOT (h.at_most_once AND h.attempts > 0) AND ${WHILE_TERM_LASTS}
    FOR UPDATE`,
  )}, ${takenFromHistory(
    'gone',
    (table) => `DELETE FROM punctual.${table} h
    WHERE h.tenant = $4::text AND h.id = ANY(ARRAY(SELECT id FROM locked)) AND h.finished_at >= $7::bigint
      AND (SELECT count(*) FROM locked) = cardinality($6::uuid[])`,
  )}, answer AS (
    ${insertMoved({
      from: 'job_history',
      to: 'later',
      rows: 'gone',
      set: {
        run_at: '$8::bigint',
        admit_at: '$8::bigint',
        blocked: 'true',
        failures: '0',
        losses: '0',
        earlier_attempts: WITH_LAST_ATTEMPT,
        size_kib: newSize('m.payload', 'm.target'),
      },
    })}
    RETURNING ${selectWaiting('later', 'later.size_kib')}
  ), reopened AS (
    UPDATE punctual.batches b SET state = 'pending', run = b.run + 1, due_at = $8::bigint, started_at = NULL,
      cancelled_at = NULL, ended_at = NULL, error = NULL
    WHERE b.id = $5::uuid AND EXISTS (SELECT 1 FROM gone)
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_retried)
    SELECT $8::bigint, $4::text, count(*) FROM gone HAVING count(*) > 0
  )`,
);

/** Lets all members of an ended batch wait again; answers with them, or with none if one is gone or may not run again. */
export function retryBatch(
  db: Queryable,
  term: TermKey,
  {
    id,
    tenant,
    members,
  }: { readonly id: string; readonly tenant: string; readonly members: readonly string[] },
  now: number,
): Promise<Waiting[]> {
  const values = [tenant, id, members, earliestEnd(id), now];
  return runAsLeader<Waiting & Record<string, unknown>>(db, term, RETRY_BATCH, values);
}
