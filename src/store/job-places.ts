/**
 * One job, whatever place it is in, as one set of columns. The three arms are joined by UNION ALL inside a
 * single statement: with one statement per place, a job that moves between two of them would be found nowhere.
 */

/** Live jobs: waiting or running. */
export const LIVE_ARM = `
  SELECT 'live' AS place, false AS raw, j.id, j.tenant, q.name AS queue,
    CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END AS state, false AS held,
    j.rank, j.run_at, j.attempts, j.failures, j.losses, j.max_attempts, j.max_losses, j.at_most_once, j.timeout_ms,
    j.created_at, j.start_before, j.late_by, j.task, j.created_by, j.key, j.concurrency_key, j.target, j.backoff,
    j.requires, j.payload, j.earlier_attempts, c.fence, c.worker, c.epoch, c.claimed_at, NULL::bigint AS started_at,
    NULL::bigint AS finished_at, NULL::text AS outcome, NULL::json AS result, NULL::json AS error, c.progress,
    j.schedule, j.occurrence
  FROM punctual.jobs j
  JOIN punctual.queues q ON q.id = j.queue
  LEFT JOIN punctual.claims c ON c.job = j.id`;

/** Jobs not admitted yet. A raw submission shows what it says; the rest follows within a second. */
export const LATER_ARM = `
  SELECT 'later' AS place, l.submission IS NOT NULL AS raw, l.id, l.tenant,
    coalesce(q.name, s.raw ->> 'queue', 'default') AS queue, 'pending' AS state, l.held,
    coalesce(l.rank, 5::smallint), coalesce(l.run_at, l.admit_at), l.attempts, l.failures, l.losses,
    coalesce(l.max_attempts, 4::smallint), coalesce(l.max_losses, 3::smallint), coalesce(l.at_most_once, false),
    coalesce(l.timeout_ms, 1200000), l.created_at, l.start_before, l.late_by, coalesce(l.task, s.raw ->> 'task'),
    l.created_by, l.key, l.concurrency_key, coalesce(l.target, s.raw -> 'target'), l.backoff, l.requires,
    coalesce(l.payload, s.raw -> 'payload', 'null'::json), l.earlier_attempts, NULL::int, NULL::uuid, NULL::bigint,
    NULL::bigint, NULL::bigint, NULL::bigint, NULL::text, NULL::json, NULL::json, NULL::json,
    l.schedule, l.occurrence
  FROM punctual.later l
  CROSS JOIN LATERAL punctual.readable(l.submission) s(raw)
  LEFT JOIN punctual.queues q ON q.id = l.queue`;

/** Ended jobs. */
export const HISTORY_ARM = `
  SELECT 'history' AS place, false AS raw, h.id, h.tenant, q.name AS queue, h.state, false AS held,
    h.rank, h.run_at, h.attempts, h.failures, h.losses, h.max_attempts, h.max_losses, h.at_most_once, h.timeout_ms,
    h.created_at, h.start_before, h.late_by, h.task, h.created_by, h.key, h.concurrency_key, h.target, h.backoff,
    h.requires, h.payload, h.earlier_attempts, h.fence, h.worker, h.epoch, h.claimed_at, h.started_at,
    h.finished_at, h.outcome, h.result, h.error, h.progress, h.schedule, h.occurrence
  FROM punctual.job_history h
  JOIN punctual.queues q ON q.id = h.queue`;

/** The columns of the arms that are small whatever a job holds. */
export const SMALL_COLUMNS = `place, raw, id, tenant, queue, state, held, rank, run_at, attempts, failures, losses,
  max_attempts, max_losses, at_most_once, timeout_ms, created_at, start_before, late_by, task, created_by, key,
  concurrency_key, target, backoff, requires, fence, worker, epoch, claimed_at, started_at, finished_at, outcome,
  progress, schedule, occurrence`;

/** Attempts of one job that are read at most: a job may have had thousands, each with an error. */
const MAX_ATTEMPTS_READ = 100;

/** The newest attempts as one JSON text, which is read far faster than an array of texts. */
export const NEWEST_ATTEMPTS = `array_to_json(
  earlier_attempts[greatest(1, cardinality(earlier_attempts) - ${MAX_ATTEMPTS_READ - 1}):])`;

/** How many there are of them. */
export const ATTEMPT_COUNT = 'coalesce(cardinality(earlier_attempts), 0)';

/** A stored attempt, as JSON in `earlier_attempts`. */
export interface StoredAttempt {
  readonly fence: number;
  readonly epoch: number;
  readonly worker: string;
  readonly claimedAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number;
  readonly outcome: string;
  readonly error: { message: string; code?: string; stack?: string } | null;
}

/** A job read from any place. JSON columns are texts. */
export interface PlacedRow extends Record<string, unknown> {
  readonly place: 'live' | 'later' | 'history';
  /** A submission of a caller's transaction that has not been parsed yet. */
  readonly raw: boolean;
  readonly id: string;
  readonly tenant: string;
  readonly queue: string;
  readonly state: 'pending' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'skipped';
  readonly held: boolean;
  readonly rank: number;
  readonly run_at: number;
  readonly attempts: number;
  readonly failures: number;
  readonly losses: number;
  readonly max_attempts: number;
  readonly max_losses: number;
  readonly at_most_once: boolean;
  readonly timeout_ms: number;
  readonly created_at: number;
  readonly start_before: number | null;
  readonly late_by: number | null;
  readonly task: string | null;
  readonly created_by: string;
  readonly key: string | null;
  readonly concurrency_key: string | null;
  readonly target: string | null;
  readonly backoff: string | null;
  readonly requires: string | null;
  readonly payload: string;
  /** The newest of its earlier attempts. */
  readonly earlier_attempts: StoredAttempt[] | null;
  /** How many earlier attempts it has had. */
  readonly earlier_count: number;
  readonly fence: number | null;
  readonly worker: string | null;
  readonly epoch: number | null;
  readonly claimed_at: number | null;
  readonly started_at: number | null;
  readonly finished_at: number | null;
  readonly outcome: string | null;
  readonly result: string | null;
  readonly error: string | null;
  readonly progress: string | null;
  /** The name of the schedule that made it. */
  readonly schedule: string | null;
  /** The moment of the schedule that it was made for; null for a run by hand. */
  readonly occurrence: number | null;
}

/** A row as it came from the database, with its attempts read from their text. */
export function toPlacedRow<R extends PlacedRow>(row: R): R {
  const attempts: unknown = row.earlier_attempts;
  return typeof attempts === 'string' ? { ...row, earlier_attempts: JSON.parse(attempts) } : row;
}
