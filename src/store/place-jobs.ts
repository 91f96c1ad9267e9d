import { type Queryable, run, type Statement } from './database.js';
import { SHARED_COLUMNS } from './finish-jobs.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import type { Waiting } from './read-backlog.js';

/** Moves of waiting jobs between the live table, `later` and history; each in one fenced statement. */

const WAITING = `id, tenant, queue, needs, rank, run_at AS "runAt", attempts + 1 AS fence,
  start_before AS "startBefore"`;

/** Overrides are JSON objects with column names; null changes nothing. */
const POSTPONE_JOB = leaderStatement(
  'postpone-job',
  `gone AS (
    DELETE FROM punctual.jobs j
    WHERE j.id = $4::uuid AND NOT EXISTS (SELECT 1 FROM punctual.claims c WHERE c.job = j.id) AND ${WHILE_TERM_LASTS}
    RETURNING j.id, j AS row
  ), changed AS (
    SELECT r.* FROM gone CROSS JOIN LATERAL json_populate_record(gone.row, coalesce($5::json, '{}')) r
  ), kept AS (
    INSERT INTO punctual.later (id, tenant, admit_at, held, start_before, queue, created_at, created_by, job)
    SELECT id, tenant, $6::bigint, $7::boolean, CASE WHEN attempts = 0 THEN start_before END, '', created_at,
      created_by, row_to_json(changed)
    FROM changed
  ), answer AS (SELECT id FROM gone)`,
);

const CHANGE_LATER = leaderStatement(
  'change-later',
  `answer AS (
    UPDATE punctual.later l SET
      held = $6::boolean,
      admit_at = $7::bigint,
      job = row_to_json(json_populate_record(json_populate_record(NULL::punctual.jobs, l.job), coalesce($5::json, '{}')))
    WHERE l.id = $4::uuid AND l.parsed AND ${WHILE_TERM_LASTS}
    RETURNING l.id
  )`,
);

const CHANGE_LIVE = leaderStatement(
  'change-live',
  `answer AS (
    UPDATE punctual.jobs j SET
      run_at = coalesce($5::bigint, j.run_at),
      rank = coalesce($6::smallint, j.rank),
      payload = coalesce($7::json, j.payload)
    WHERE j.id = $4::uuid AND NOT EXISTS (SELECT 1 FROM punctual.claims c WHERE c.job = j.id) AND ${WHILE_TERM_LASTS}
    RETURNING ${WAITING}
  )`,
);

/** With a replacement given, a raw submission is admitted as the row that it was parsed into. */
const ADMIT_JOBS = leaderStatement(
  'admit-jobs',
  `taken AS (
    DELETE FROM punctual.later l USING unnest($4::uuid[], $5::json[], $6::json[]) u(id, row, override)
    WHERE l.id = u.id AND (l.parsed OR u.row IS NOT NULL) AND ${WHILE_TERM_LASTS}
    RETURNING coalesce(u.row, l.job) AS job, u.override
  ), answer AS (
    INSERT INTO punctual.jobs
    SELECT r.* FROM taken t CROSS JOIN LATERAL json_populate_record(
      json_populate_record(NULL::punctual.jobs, t.job), coalesce(t.override, '{}')) r
    RETURNING ${WAITING}
  )`,
);

/** A raw submission that is held or due far ahead stays in `later`, parsed. */
const KEEP_LATER = leaderStatement(
  'keep-later',
  `answer AS (
    UPDATE punctual.later l SET parsed = true, job = u.row, held = u.held, admit_at = u.admit_at,
      start_before = u.start_before
    FROM unnest($4::uuid[], $5::json[], $6::boolean[], $7::bigint[], $8::bigint[])
      u(id, row, held, admit_at, start_before)
    WHERE l.id = u.id AND NOT l.parsed AND ${WHILE_TERM_LASTS}
    RETURNING l.id
  )`,
);

/** A dead letter goes back to the live jobs with its history: the last attempt joins the earlier ones. */
const REDRIVE_JOBS = leaderStatement(
  'redrive-jobs',
  `gone AS (
    DELETE FROM punctual.job_history h USING unnest($5::uuid[]) u(id)
    WHERE h.tenant = $4::text AND h.id = u.id AND h.state IN ('failed', 'cancelled') AND NOT h.at_most_once
      AND ${WHILE_TERM_LASTS}
    RETURNING h.*
  ), answer AS (
    INSERT INTO punctual.jobs (${SHARED_COLUMNS})
    SELECT id, tenant, queue, needs, rank, $6::bigint, attempts, 0, 0, max_attempts, max_losses, at_most_once,
      timeout_ms, created_at, NULL, late_by, task, created_by, key, concurrency_key, target, backoff, requires,
      payload,
      CASE WHEN fence IS NULL THEN earlier_attempts ELSE array_append(earlier_attempts, json_build_object(
        'fence', fence, 'epoch', epoch, 'worker', worker, 'claimedAt', claimed_at, 'startedAt', started_at,
        'finishedAt', finished_at, 'outcome', outcome, 'error', error)) END
    FROM gone
    RETURNING ${WAITING}
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_retried)
    SELECT $6::bigint, $4, count(*) FROM answer HAVING count(*) > 0
  )`,
);

const READ_TO_ADMIT: Statement = {
  name: 'read-to-admit',
  text: `
    SELECT id, tenant, parsed, created_at AS "createdAt", created_by AS "createdBy",
      CASE WHEN parsed THEN NULL ELSE job END AS submission
    FROM punctual.later WHERE NOT held AND admit_at <= $1 ORDER BY admit_at LIMIT $2`,
};

type WaitingRow = Waiting & Record<string, unknown>;

/** A job of `later` whose time has come. */
export interface ToAdmit extends Record<string, unknown> {
  readonly id: string;
  readonly tenant: string;
  readonly parsed: boolean;
  readonly createdAt: number;
  readonly createdBy: string;
  /** The raw submission of one that was made inside a caller's transaction. */
  readonly submission: string | null;
}

export function readToAdmit(db: Queryable, now: number, limit: number): Promise<ToAdmit[]> {
  return run(db, READ_TO_ADMIT, [now, limit]);
}

/** Moves jobs from `later` to the live table, each optionally as another row or with some columns changed. */
export function admitJobs(
  db: Queryable,
  term: TermKey,
  jobs: readonly { id: string; row: string | null; override: string | null }[],
): Promise<WaitingRow[]> {
  return runAsLeader(db, term, ADMIT_JOBS, [
    jobs.map((job) => job.id),
    jobs.map((job) => job.row),
    jobs.map((job) => job.override),
  ]);
}

export function keepLater(
  db: Queryable,
  term: TermKey,
  jobs: readonly { id: string; row: string; held: boolean; admitAt: number; startBefore: number | null }[],
): Promise<{ id: string }[]> {
  return runAsLeader(db, term, KEEP_LATER, [
    jobs.map((job) => job.id),
    jobs.map((job) => job.row),
    jobs.map((job) => job.held),
    jobs.map((job) => job.admitAt),
    jobs.map((job) => job.startBefore),
  ]);
}

/** Moves a waiting live job to `later`; answers whether it was there. */
export async function postponeJob(
  db: Queryable,
  term: TermKey,
  job: { id: string; override: string | null; admitAt: number; held: boolean },
): Promise<boolean> {
  return (
    (await runAsLeader(db, term, POSTPONE_JOB, [job.id, job.override, job.admitAt, job.held])).length > 0
  );
}

/** Changes a job of `later` where it is; answers whether it was there. */
export async function changeLater(
  db: Queryable,
  term: TermKey,
  job: { id: string; override: string | null; admitAt: number; held: boolean },
): Promise<boolean> {
  return (
    (await runAsLeader(db, term, CHANGE_LATER, [job.id, job.override, job.held, job.admitAt])).length > 0
  );
}

/** Changes a waiting live job; null when it is not there or runs. */
export async function changeLive(
  db: Queryable,
  term: TermKey,
  change: { id: string; runAt: number | null; rank: number | null; payload: string | null },
): Promise<Waiting | null> {
  const rows = await runAsLeader<WaitingRow>(db, term, CHANGE_LIVE, [
    change.id,
    change.runAt,
    change.rank,
    change.payload,
  ]);
  return rows[0] ?? null;
}

/** Sends ended jobs round again; answers with those that went. */
export function redriveJobs(
  db: Queryable,
  term: TermKey,
  tenant: string,
  ids: readonly string[],
  now: number,
): Promise<WaitingRow[]> {
  return runAsLeader(db, term, REDRIVE_JOBS, [tenant, ids, now]);
}
