import { byIndex, type Changed, changedRows, inClaimOrder, refusedOf } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';
import { type CamelRowOf, type ColumnOf, columnsOf, select, selectCamel } from './job-columns.js';
import {
  auditedStatement,
  leaderStatement,
  runAsLeader,
  type TermKey,
  WHILE_TERM_LASTS,
} from './leader-statement.js';
import { WAITING, type Waiting } from './read-backlog.js';

/** Reading claims, and what is written to them while a job runs. */

/**
 * All claims. Must run after the takeover's commit, or the last claims of the old term are missed. The second column
 * rules out an index-only scan: while the xmin horizon is pinned there is a dead row for every job that ended, and dead
 * rows cost several times as much through the index as in a sequential scan.
 */
const FIND_CLAIMS = statement('find-claims', 'SELECT job AS id, fence FROM punctual.claims');

/** The columns of a job that decide about its attempts. */
export const FACTS = [
  ...(['task', 'timeout_ms', 'failures', 'losses', 'max_attempts', 'max_losses', 'at_most_once'] as const),
  ...(['backoff', 'run_at', 'late_by', 'schedule', 'workflow', 'batch'] as const),
] as const;

/** The columns of a job that its assignments carry. */
export const WORK = ['payload', 'target', 'traceparent', 'workflow'] as const;

const CLAIM = columnsOf('claims').map(({ name }) => name);

/** Without payload and target, which few of the claims will need again. */
const READ_CLAIMS = statement(
  'read-claims',
  `
    SELECT ${selectCamel('c', CLAIM)}, ${selectCamel('j', [...new Set([...WAITING, 'size_kib' as const, ...FACTS])])},
      j.concurrency_key AS "key"
    FROM punctual.claims c JOIN punctual.jobs j ON ${byIndex('j.id', 'c.job')}
    WHERE c.job = ANY($1::uuid[])`,
);

const READ_WORK = statement(
  'read-work',
  `SELECT ${select('j', ['id', ...WORK])} FROM punctual.jobs j WHERE j.id = ANY($1::uuid[])`,
);

const SAVE_PROGRESS = leaderStatement(
  'save-progress',
  `answer AS (
    UPDATE punctual.claims c SET progress = u.progress
    FROM unnest($4::uuid[], $5::int[], $6::json[]) u(job, fence, progress)
    WHERE ${byIndex('c.job', 'u.job')} AND c.fence = u.fence AND ${WHILE_TERM_LASTS}
    RETURNING c.job
  )`,
);

const HAND_ON_CLAIMS = leaderStatement(
  'hand-on-claims',
  `handed AS (
    UPDATE punctual.claims c SET
      handed_on_at = coalesce(c.handed_on_at, $4::bigint), started_at = coalesce(c.started_at, u.started_at)
    FROM unnest($5::uuid[], $6::int[], $7::bigint[]) u(job, fence, started_at)
    WHERE ${byIndex('c.job', 'u.job')} AND c.fence = u.fence AND ${WHILE_TERM_LASTS}
    RETURNING c.job
  ), answer AS (${changedRows('handed', 'job', 'cardinality($5::uuid[])')})`,
);

const CANCEL_CLAIMS = auditedStatement(
  'cancel-claims',
  `answer AS (
    UPDATE punctual.claims c SET cancelled_at = coalesce(c.cancelled_at, $6::bigint)
    FROM unnest($4::uuid[], $5::int[]) u(job, fence)
    WHERE ${byIndex('c.job', 'u.job')} AND c.fence = u.fence AND ${WHILE_TERM_LASTS}
    RETURNING c.job
  )`,
);

/**
 * Releases claims whose attempts never started and never will: their worker confirmed it, or they were never handed
 * over. The fence is used up nevertheless, so that nothing handed over under it can ever count. A hand-over stays on
 * record as an attempt, which draws on no budget.
 */
const RELEASE_CLAIMS = leaderStatement(
  'release-claims',
  `freed AS (
    DELETE FROM punctual.claims c USING unnest($4::uuid[], $5::int[], $6::json[]) u(job, fence, attempt)
    WHERE ${byIndex('c.job', 'u.job')} AND c.fence = u.fence AND ${WHILE_TERM_LASTS}
    RETURNING c.job, c.fence, u.attempt
  ), answer AS (
    UPDATE punctual.jobs j SET
      attempts = f.fence,
      earlier_attempts = CASE WHEN f.attempt IS NULL THEN j.earlier_attempts
        ELSE array_append(j.earlier_attempts, f.attempt) END
    FROM freed f WHERE ${byIndex('j.id', 'f.job')}
    RETURNING j.id
  )`,
);

/** Marks the claims of jobs that are to be cancelled, for this leader and the next; answers which of the jobs run. */
export async function cancelClaims(
  db: Queryable,
  term: TermKey,
  claims: readonly { id: string; fence: number }[],
  now: number,
): Promise<string[]> {
  const ordered = inClaimOrder(claims);
  const rows = await runAsLeader<{ job: string }>(db, term, CANCEL_CLAIMS, [
    ordered.map((claim) => claim.id),
    ordered.map((claim) => claim.fence),
    now,
  ]);
  return rows.map(({ job }) => job);
}

/** An attempt that its worker has handed on. */
export interface HandedOn {
  readonly id: string;
  readonly fence: number;
  /** When it started, if the worker said so. */
  readonly startedAt: number | null;
}

/** Notes that no worker holds these attempts any more; answers with those that were not claimed. */
export async function handOnClaims(
  db: Queryable,
  term: TermKey,
  attempts: readonly HandedOn[],
  now: number,
): Promise<ReadonlySet<string>> {
  const ordered = inClaimOrder(attempts);
  const [answer] = await runAsLeader<Changed>(db, term, HAND_ON_CLAIMS, [
    now,
    ordered.map((attempt) => attempt.id),
    ordered.map((attempt) => attempt.fence),
    ordered.map((attempt) => attempt.startedAt),
  ]);
  return refusedOf(attempts, answer);
}

/** A claim to be released. */
interface Release {
  readonly id: string;
  readonly fence: number;
  /** The attempt as JSON, appended to the job's earlier attempts; null when nobody was ever handed it. */
  readonly attempt: string | null;
}

/** Releases claims; answers with the ids of the jobs that wait again. */
export async function releaseClaims(
  db: Queryable,
  term: TermKey,
  claims: readonly Release[],
): Promise<string[]> {
  const ordered = inClaimOrder(claims);
  const rows = await runAsLeader<{ id: string }>(db, term, RELEASE_CLAIMS, [
    ordered.map((claim) => claim.id),
    ordered.map((claim) => claim.fence),
    ordered.map((claim) => claim.attempt),
  ]);
  return rows.map((row) => row.id);
}

/** A claim with what the dispatcher must know of its job. JSON columns are texts. */
export type StoredClaim = CamelRowOf<'claims', ColumnOf<'claims'>> &
  Omit<Waiting, 'row'> &
  CamelRowOf<'jobs', (typeof FACTS)[number]> &
  Record<string, unknown>;

const CLAIMS_AT_ONCE = 2_000;

interface ClaimsOptions {
  readonly atOnce?: number;
  /** Default: all. */
  readonly most?: number;
  /** Whether nobody needs them any more. */
  readonly isOver?: () => boolean;
}

/** The claims, read in portions: only a leader that reads them makes or ends any, so they do not change meanwhile. */
export async function readClaims(
  db: Queryable,
  { atOnce = CLAIMS_AT_ONCE, most = Number.POSITIVE_INFINITY, isOver = () => false }: ClaimsOptions = {},
): Promise<StoredClaim[]> {
  const found = await run<{ id: string }>(db, FIND_CLAIMS, []);
  const claims: StoredClaim[] = [];
  for (let from = 0; from < Math.min(found.length, most) && !isOver(); from += atOnce) {
    const ids = found.slice(from, from + atOnce).map(({ id }) => id);
    for (const claim of await run<StoredClaim>(db, READ_CLAIMS, [ids])) claims.push(claim);
  }
  return claims;
}

/** What an assignment carries, as JSON texts. The target is null when it is the handler that the task names. */
export type Work = CamelRowOf<'jobs', (typeof WORK)[number]>;

/** Payload and target of these live jobs, by id. */
export async function readWork(db: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, Work>> {
  const rows = await run<Work & { readonly id: string } & Record<string, unknown>>(db, READ_WORK, [ids]);
  return new Map(rows.map((row) => [row.id, row]));
}

/** Writes the newest progress of running attempts. */
export async function saveProgress(
  db: Queryable,
  term: TermKey,
  reports: readonly { id: string; fence: number; progress: string }[],
): Promise<void> {
  const ordered = inClaimOrder(reports);
  await runAsLeader(db, term, SAVE_PROGRESS, [
    ordered.map((report) => report.id),
    ordered.map((report) => report.fence),
    ordered.map((report) => report.progress),
  ]);
}
