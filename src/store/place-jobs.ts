import { byIndex, NOT_CLAIMED } from './batch-statement.js';
import { Columns } from './columns.js';
import { type Queryable, run, statement } from './database.js';
import { column, insertMoved, rowBytes } from './job-columns.js';
import { awaitsArtifact, type JobRow, NEW_LATER_COLUMNS } from './job-row.js';
import {
  auditedStatement,
  type LeaderStatement,
  leaderStatement,
  runAsLeader,
  type TermKey,
  WHILE_TERM_LASTS,
} from './leader-statement.js';
import { selectWaiting, type Waiting } from './read-backlog.js';

/** Moves of waiting jobs between the live table, `later` and history; each in one fenced statement. */

/** The SQL for the size of a job with a new payload. */
export const newSize = (payload: string, target: string) =>
  `(octet_length((${payload})::text) + coalesce(octet_length(${target}::text), 0)) >> 10`;

/** The columns that may change when a job moves to another place; null keeps the old value. */
const CHANGED = {
  rank: 'coalesce(m.new_rank, m.rank)',
  run_at: 'coalesce(m.new_run_at, m.run_at)',
  payload: 'coalesce(m.new_payload, m.payload)',
  size_kib: `coalesce(${newSize('m.new_payload', 'm.target')}, m.size_kib)`,
};

/** Jobs that are, or move to, `later`. Without an admission time, the time at which the job is due. */
const POSTPONED = `unnest($4::uuid[], $5::bigint[], $6::smallint[], $7::json[], $8::bigint[], $9::boolean[])
      u(id, run_at, rank, payload, admit_at, held)`;

const POSTPONE_JOBS = auditedStatement(
  'postpone-jobs',
  `gone AS (
    DELETE FROM punctual.jobs j USING ${POSTPONED}
    WHERE ${byIndex('j.id', 'u.id')} AND ${NOT_CLAIMED} AND ${WHILE_TERM_LASTS}
    RETURNING j.*, u.run_at AS new_run_at, u.rank AS new_rank, u.payload AS new_payload, u.admit_at, u.held
  ), answer AS (
    ${insertMoved({
      from: 'jobs',
      to: 'later',
      rows: 'gone',
      set: { ...CHANGED, admit_at: 'coalesce(m.admit_at, m.new_run_at, m.run_at)', held: 'm.held' },
    })}
    RETURNING id
  )`,
);

const CHANGE_LATER = auditedStatement(
  'change-later',
  `answer AS (
    UPDATE punctual.later l SET
      run_at = coalesce(u.run_at, l.run_at),
      -- A job waits for its artifact as long after it is due as before.
      artifact_by = l.artifact_by + coalesce(u.run_at - l.run_at, 0),
      rank = coalesce(u.rank, l.rank),
      payload = coalesce(u.payload, l.payload),
      size_kib = coalesce(${newSize('u.payload', 'l.target')}, l.size_kib),
      admit_at = CASE WHEN l.blocked THEN l.admit_at ELSE coalesce(u.admit_at, u.run_at, l.run_at) END,
      held = u.held
    FROM ${POSTPONED}
    WHERE ${byIndex('l.id', 'u.id')} AND l.submission IS NULL AND ${WHILE_TERM_LASTS}
    RETURNING l.id
  )`,
);

const CHANGE_LIVE = auditedStatement(
  'change-live',
  `answer AS (
    UPDATE punctual.jobs j SET
      run_at = coalesce($5::bigint, j.run_at),
      rank = coalesce($6::smallint, j.rank),
      payload = coalesce($7::json, j.payload),
      size_kib = coalesce(${newSize('$7::json', 'j.target')}, j.size_kib),
      edited = true
    WHERE j.id = $4::uuid AND ${NOT_CLAIMED} AND ${WHILE_TERM_LASTS}
    RETURNING ${selectWaiting('j', 'j.size_kib')}
  )`,
);

const ADMIT_JOBS = auditedStatement(
  'admit-jobs',
  `taken AS (
    DELETE FROM punctual.later l
    USING unnest($4::uuid[], $5::bigint[], $6::smallint[], $7::json[]) u(id, run_at, rank, payload)
    WHERE ${byIndex('l.id', 'u.id')} AND l.submission IS NULL AND NOT l.blocked AND ${WHILE_TERM_LASTS}
    RETURNING l.*, u.run_at AS new_run_at, u.rank AS new_rank, u.payload AS new_payload
  ), answer AS (
    ${insertMoved({ from: 'later', to: 'jobs', rows: 'taken', set: { ...CHANGED, edited: 'true' } })}
    RETURNING ${selectWaiting('jobs', 'jobs.size_kib')}
  )`,
);

/** The row that a submission was parsed into, and when it is admitted. */
export interface Parsed {
  readonly row: JobRow;
  readonly admitAt: number;
  readonly held: boolean;
}

/** Columns whose final values the caller's transaction has written. */
const WRITTEN = ['tenant', 'created_at', 'created_by'];

/** The columns of parsed submissions: all but what never changes about a job. */
export const PARSED_COLUMNS = new Columns<Parsed>([
  ...NEW_LATER_COLUMNS.inside((job: Parsed) => job.row).filter(({ name }) => !WRITTEN.includes(name)),
  column('admit_at', (job) => job.admitAt),
  column('held', (job) => job.held),
  column('blocked', (job) => awaitsArtifact(job.row)),
]);
const PARSED = PARSED_COLUMNS.inSql(4);

/** Replaces a submission of a caller's transaction by the row that it was parsed into. */
const PARSE_LATER = leaderStatement(
  'parse-later',
  `answer AS (
    UPDATE punctual.later l SET submission = NULL, (${PARSED_COLUMNS.names}) = ROW(${PARSED.all})
    FROM ${PARSED.source}
    WHERE ${byIndex('l.id', 'u.id')} AND l.submission IS NOT NULL AND ${WHILE_TERM_LASTS}
    RETURNING l.id
  )`,
);

/** All attempts of an ended job: the earlier ones and the last. */
export const WITH_LAST_ATTEMPT = `CASE WHEN m.fence IS NULL THEN m.earlier_attempts
      ELSE array_append(m.earlier_attempts, json_build_object(
        'fence', m.fence, 'epoch', m.epoch, 'worker', m.worker, 'claimedAt', m.claimed_at, 'startedAt', m.started_at,
        'finishedAt', m.finished_at, 'outcome', m.outcome, 'error', m.error, 'execution', m.execution)) END`;

/** Moves dead letters back to the live jobs; their last attempt is appended to the earlier ones. */
const REDRIVE_JOBS = auditedStatement(
  'redrive-jobs',
  `gone AS (
    DELETE FROM punctual.job_history h USING unnest($5::uuid[]) u(id)
    WHERE h.tenant = $4::text AND h.id = u.id AND h.state IN ('failed', 'cancelled') AND NOT h.at_most_once
      AND h.workflow IS NULL AND h.batch IS NULL AND ${WHILE_TERM_LASTS}
    RETURNING h.*
  ), answer AS (
    ${insertMoved({
      from: 'job_history',
      to: 'jobs',
      rows: 'gone',
      set: {
        run_at: '$6::bigint',
        failures: '0',
        losses: '0',
        start_before: 'NULL',
        earlier_attempts: WITH_LAST_ATTEMPT,
        size_kib: newSize('m.payload', 'm.target'),
        edited: 'true',
      },
    })}
    RETURNING ${selectWaiting('jobs', 'jobs.size_kib')}
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_retried)
    SELECT $6::bigint, $4, count(*) FROM answer HAVING count(*) > 0
  )`,
);

/** About how many bytes the text of a submission has: a compressed one is several times as long as its stored form. */
const SUBMISSION_BYTES = `coalesce(pg_column_size(l.submission), 0)
      * CASE WHEN pg_column_compression(l.submission) IS NULL THEN 1 ELSE 8 END`;

/** Sizes are taken from the pointers to large values, without reading the values. */
const rowsToAdmit = `l.id, l.tenant, l.created_at AS "createdAt", l.created_by AS "createdBy",
      ${rowBytes('l', 'later')} + ${SUBMISSION_BYTES} AS bytes`;

/** How many jobs after a full page are searched for tenants without a job on it, and how many of theirs are added. */
const LOOK_BEYOND = 100_000;
const FROM_BEYOND = 500;

/**
 * The oldest jobs first. If they fill the page, some jobs of tenants without any on it are added, so that a flood of
 * one tenant does not keep all others from being admitted.
 */
const READ_TO_ADMIT = statement(
  'read-to-admit',
  `
    WITH oldest AS MATERIALIZED (
      SELECT ${rowsToAdmit}
      FROM punctual.later l WHERE NOT l.held AND NOT l.blocked AND l.admit_at <= $1 AND l.id <> ALL ($3::uuid[])
      ORDER BY l.admit_at LIMIT $2::int)
    SELECT * FROM oldest
    UNION ALL
    (SELECT ${rowsToAdmit}
     FROM (
       SELECT * FROM punctual.later l WHERE NOT l.held AND NOT l.blocked AND l.admit_at <= $1 AND l.id <> ALL ($3::uuid[])
         AND (SELECT count(*) FROM oldest) = $2::int
       ORDER BY l.admit_at OFFSET $2::int LIMIT ${LOOK_BEYOND}) l
     WHERE l.tenant <> ALL (ARRAY(SELECT DISTINCT o.tenant FROM oldest o)) LIMIT ${FROM_BEYOND})`,
);

/** Those of the given jobs that are still to be admitted, with the exact size of unparsed submissions. */
const MEASURE_TO_ADMIT = statement(
  'measure-to-admit',
  `
    SELECT l.id, octet_length(l.submission::text) AS bytes, l.said_at AS "saidAt"
    FROM unnest($2::uuid[]) u(id) JOIN punctual.later l ON ${byIndex('l.id', 'u.id')}
    WHERE NOT l.held AND NOT l.blocked AND l.admit_at <= $1`,
);

const READ_SUBMISSIONS = statement(
  'read-submissions',
  `
    SELECT l.id, l.submission FROM unnest($1::uuid[]) u(id) JOIN punctual.later l ON ${byIndex('l.id', 'u.id')}
    WHERE l.submission IS NOT NULL`,
);

type WaitingRow = Waiting & Record<string, unknown>;

/** A job of `later` whose admission time has come. */
export interface ToAdmit {
  readonly id: string;
  readonly tenant: string;
  readonly createdAt: number;
  readonly createdBy: string;
  /** About the size of its row. */
  readonly bytes: number;
}

/** Jobs of `later` whose admission time has come, oldest first, without the skipped ones. */
export function readToAdmit(
  db: Queryable,
  now: number,
  limit: number,
  skipped: readonly string[],
): Promise<(ToAdmit & Record<string, unknown>)[]> {
  return run(db, READ_TO_ADMIT, [now, limit, skipped]);
}

/** What is known of a job to be admitted before its submission is read. */
interface Measured extends Record<string, unknown> {
  readonly id: string;
  /** The bytes of its unparsed submission; null for a parsed one. */
  readonly bytes: number | null;
  /** When it was submitted, in microseconds. */
  readonly saidAt: number | null;
}

/** Those of the jobs that are still to be admitted. */
export async function measureToAdmit(
  db: Queryable,
  now: number,
  ids: readonly string[],
): Promise<Map<string, Measured>> {
  const rows = await run<Measured>(db, MEASURE_TO_ADMIT, [now, ids]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** The unparsed submissions of these jobs, as JSON texts. */
export async function readSubmissions(db: Queryable, ids: readonly string[]): Promise<Map<string, string>> {
  const rows = await run<{ id: string; submission: string }>(db, READ_SUBMISSIONS, [ids]);
  return new Map(rows.map(({ id, submission }) => [id, submission]));
}

/** A job and its changed columns; null keeps the old value. */
export interface JobChange {
  readonly id: string;
  readonly runAt: number | null;
  readonly rank: number | null;
  /** JSON text. */
  readonly payload: string | null;
}

/** The change that changes nothing. */
export function unchanged(id: string): JobChange {
  return { id, runAt: null, rank: null, payload: null };
}

/** A change of a job that is, or moves to, `later`. */
interface PostponedJob extends JobChange {
  /** Null is the time at which it is due. */
  readonly admitAt: number | null;
  readonly held: boolean;
}

/** Moves parsed jobs from `later` to the live table. */
export function admitJobs(db: Queryable, term: TermKey, jobs: readonly JobChange[]): Promise<WaitingRow[]> {
  return runAsLeader(db, term, ADMIT_JOBS, [
    jobs.map((job) => job.id),
    jobs.map((job) => job.runAt),
    jobs.map((job) => job.rank),
    jobs.map((job) => job.payload),
  ]);
}

/** Replaces submissions of callers' transactions by their parsed rows. */
export async function parseLater(db: Queryable, term: TermKey, jobs: readonly Parsed[]): Promise<void> {
  await runAsLeader(db, term, PARSE_LATER, PARSED_COLUMNS.parameters(jobs));
}

/** Moves waiting live jobs to `later`; answers with the ids of those that were there. */
export function postponeJobs(db: Queryable, term: TermKey, jobs: readonly PostponedJob[]): Promise<string[]> {
  return postponed(db, term, POSTPONE_JOBS, jobs);
}

/** Changes jobs in `later`; answers with the ids of those that were there. */
export function changeLater(db: Queryable, term: TermKey, jobs: readonly PostponedJob[]): Promise<string[]> {
  return postponed(db, term, CHANGE_LATER, jobs);
}

async function postponed(
  db: Queryable,
  term: TermKey,
  statement: LeaderStatement,
  jobs: readonly PostponedJob[],
): Promise<string[]> {
  const rows = await runAsLeader<{ id: string }>(db, term, statement, [
    jobs.map((job) => job.id),
    jobs.map((job) => job.runAt),
    jobs.map((job) => job.rank),
    jobs.map((job) => job.payload),
    jobs.map((job) => job.admitAt),
    jobs.map((job) => job.held),
  ]);
  return rows.map(({ id }) => id);
}

/** Changes a waiting live job; null when it is not there or runs. */
export async function changeLive(db: Queryable, term: TermKey, change: JobChange): Promise<Waiting | null> {
  const rows = await runAsLeader<WaitingRow>(db, term, CHANGE_LIVE, [
    change.id,
    change.runAt,
    change.rank,
    change.payload,
  ]);
  return rows[0] ?? null;
}

/** Redrives ended jobs; answers with those that it moved. */
export function redriveJobs(
  db: Queryable,
  term: TermKey,
  tenant: string,
  ids: readonly string[],
  now: number,
): Promise<WaitingRow[]> {
  return runAsLeader(db, term, REDRIVE_JOBS, [tenant, ids, now]);
}
