import type { EndState } from '../core/job.js';
import { byIndex, NOT_CLAIMED } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';
import { type EndedJob, endParts } from './ended-jobs.js';
import { rowBytes } from './job-columns.js';
import { auditedStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** Ends of waiting jobs without a further attempt: cancelled, expired, or refused on admission. */

const ENDS = 'unnest($4::uuid[], $5::text[], $6::json[]) u(id, ended_as, ended_why)';

const parts = (from: 'jobs' | 'later') => `
  ${endParts({ from, rows: 'gone', at: '$7::bigint', state: 'm.ended_as', set: { error: 'm.ended_why' }, skips: true })},
  answer AS (
    SELECT g.id, g.tenant, g.ended_as AS state, g.task, g.schedule, g.workflow, g.batch,
      (SELECT q.name FROM punctual.queues q WHERE q.id = g.queue) AS "queueName"
    FROM gone g
  )`;

const END_LIVE = auditedStatement(
  'end-waiting-live',
  `gone AS (
    DELETE FROM punctual.jobs j USING ${ENDS}
    WHERE ${byIndex('j.id', 'u.id')} AND ${NOT_CLAIMED} AND ${WHILE_TERM_LASTS}
    RETURNING j.*, u.ended_as, u.ended_why
  ), ${parts('jobs')}`,
);

const END_LATER = auditedStatement(
  'end-waiting-later',
  `gone AS (
    DELETE FROM punctual.later l USING ${ENDS}
    WHERE ${byIndex('l.id', 'u.id')} AND l.submission IS NULL AND ${WHILE_TERM_LASTS}
    RETURNING l.*, u.ended_as, u.ended_why
  ), ${parts('later')}`,
);

const FIND_EXPIRED = statement(
  'find-expired',
  `
    (SELECT j.id, false AS later, ${rowBytes('j', 'jobs')} AS bytes FROM punctual.jobs j
     WHERE j.start_before <= $1 AND j.attempts = 0 AND j.id <> ALL ($3::uuid[])
       AND ${NOT_CLAIMED}
     ORDER BY j.start_before LIMIT $2)
    UNION ALL
    (SELECT l.id, true, ${rowBytes('l', 'later')} FROM punctual.later l
     WHERE l.start_before <= $1 AND l.attempts = 0 AND l.id <> ALL ($3::uuid[]) ORDER BY l.start_before LIMIT $2)`,
);

const NEXT_EXPIRY = statement(
  'next-expiry',
  `
    SELECT least(
      (SELECT j.start_before FROM punctual.jobs j
       WHERE j.start_before IS NOT NULL AND j.attempts = 0
         AND ${NOT_CLAIMED}
       ORDER BY j.start_before LIMIT 1),
      (SELECT min(start_before) FROM punctual.later WHERE start_before IS NOT NULL AND attempts = 0)) AS at`,
);

/** How a waiting job ends. */
interface WaitingEnd {
  readonly id: string;
  readonly state: EndState;
  /** The reason as JSON, or null. */
  readonly error: string | null;
}

/** A job that has ended without a further attempt. */
interface EndedWaiting extends EndedJob, Record<string, unknown> {
  /** Null for an inline target. */
  readonly task: string | null;
}

/** Ends live jobs that are not running, or jobs not admitted yet; answers with those it ended. */
export async function endWaitingJobs(
  db: Queryable,
  term: TermKey,
  place: 'live' | 'later',
  ends: readonly WaitingEnd[],
  now: number,
): Promise<EndedWaiting[]> {
  const ended = await runAsLeader<EndedWaiting>(db, term, place === 'live' ? END_LIVE : END_LATER, [
    ends.map((end) => end.id),
    ends.map((end) => end.state),
    ends.map((end) => end.error),
    now,
  ]);
  const reasons = new Map(ends.map(({ id, error }) => [id, error]));
  return ended.map((job) => ({ ...job, error: reasons.get(job.id) ?? null, finishedAt: now }));
}

/** A waiting job whose `startBefore` has passed. */
export interface Expired extends Record<string, unknown> {
  readonly id: string;
  /** Whether it is in `later`. */
  readonly later: boolean;
  /** About the size of its row. */
  readonly bytes: number;
}

/** Up to `limit` expired jobs of each place, without the skipped ones. */
export function findExpired(
  db: Queryable,
  now: number,
  limit: number,
  skipped: readonly string[],
): Promise<Expired[]> {
  return run(db, FIND_EXPIRED, [now, limit, skipped]);
}

/** The earliest `startBefore` of all jobs that have not started; null when no job has one. */
export async function nextExpiry(db: Queryable): Promise<number | null> {
  const rows = await run<{ at: number | null }>(db, NEXT_EXPIRY, []);
  return rows[0]?.at ?? null;
}
