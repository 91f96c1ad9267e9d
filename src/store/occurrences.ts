import { type Queryable, run, statement } from './database.js';
import type { StoredState } from './fire-occurrences.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** Reading the ledger, judging whether occurrences started in time, and deleting old ones. */

/** How far the clocks of two leaders may differ: a job may seem to end this long before its occurrence was recorded. */
const CLOCK_ERROR_MS = 86_400_000;

/**
 * The job of occurrence `o`, from whatever place it is in; from history only in the days it can have ended. OFFSET 0
 * forces a look-up of this one job: a planner that believes a table to be empty, because it was at the last vacuum,
 * would prefer to read all of it.
 */
const JOB_OF_OCCURRENCE = `
  LEFT JOIN LATERAL (SELECT * FROM punctual.jobs WHERE id = o.job OFFSET 0) j ON true
  LEFT JOIN LATERAL (SELECT * FROM punctual.claims WHERE job = o.job OFFSET 0) c ON true
  LEFT JOIN LATERAL (SELECT * FROM punctual.later WHERE id = o.job OFFSET 0) l ON true
  LEFT JOIN LATERAL (
    SELECT h.id, h.late_by, h.state, h.attempts, h.error FROM punctual.job_history h
    WHERE h.tenant = o.tenant AND h.id = o.job AND h.finished_at >= o.recorded_at - ${CLOCK_ERROR_MS}
      AND h.finished_at <= $1::bigint + ${CLOCK_ERROR_MS}
    LIMIT 1) h ON true`;

const LATE_BY = `coalesce(o.late_by, j.late_by, h.late_by, l.late_by,
      CASE WHEN c.job IS NOT NULL THEN greatest(0, c.claimed_at - j.run_at) END)`;

const READ_LEDGER = statement(
  'read-ledger',
  `
    SELECT o.at, o.by_hand AS "byHand", o.state, o.reason, o.job, o.workflow, o.batch,
      o.late_after AS "lateAfter", o.until, o.count, ${LATE_BY} AS "lateBy",
      CASE WHEN j.id IS NOT NULL AND c.job IS NULL AND j.attempts = 0 OR l.id IS NOT NULL AND l.attempts = 0
        THEN 'pending'
        WHEN h.id IS NOT NULL AND h.attempts = 0 THEN CASE
          WHEN o.workflow IS NULL THEN h.state
          -- Whatever became of its first step, others may have run.
          ELSE (SELECT w.state FROM punctual.workflows w WHERE w.id = o.workflow AND w.state = 'cancelled') END
      END AS "neverStarted"
    FROM punctual.occurrences o ${JOB_OF_OCCURRENCE}
    WHERE o.schedule = $2::uuid AND (o.at, o.by_hand) < ($5::bigint, $6::boolean) AND o.at <= $4::bigint
      AND o.at >= coalesce((
        SELECT r.at FROM (
          SELECT p.at, p.until FROM punctual.occurrences p
          WHERE p.schedule = $2::uuid AND p.at < $3::bigint AND NOT p.by_hand ORDER BY p.at DESC LIMIT 1) r
        WHERE r.until >= $3::bigint), $3::bigint)
    ORDER BY o.at DESC, o.by_hand DESC LIMIT $7`,
);

const JUDGE = leaderStatement(
  'judge-occurrences',
  `due AS MATERIALIZED (
    SELECT o.* FROM punctual.occurrences o WHERE o.judge_at <= $4::bigint AND ${WHILE_TERM_LASTS}
    ORDER BY o.judge_at LIMIT $5::int
  ), seen AS (
    SELECT o.schedule, o.at, o.by_hand, ${LATE_BY} AS late_by, j.id IS NULL AND l.id IS NULL AS ended FROM due o
    ${JOB_OF_OCCURRENCE.replace('$1', '$4')}
  ), judged AS (
    UPDATE punctual.occurrences o SET judge_at = NULL, late_by = s.late_by,
      state = CASE WHEN s.late_by > o.late_after OR s.late_by IS NULL AND NOT s.ended THEN 'late' ELSE o.state END
    FROM seen s WHERE o.schedule = s.schedule AND o.at = s.at AND o.by_hand = s.by_hand
    RETURNING o.tenant, o.schedule, o.at, o.state, o.late_by, o.job
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, occurrences_late)
    SELECT $4::bigint, tenant, count(*) FROM judged WHERE state = 'late' GROUP BY tenant
  ), answer AS (
    SELECT o.at, o.state, o.late_by AS "lateBy", o.tenant, s.name AS schedule, o.job
    FROM judged o JOIN punctual.schedules s ON s.id = o.schedule
  )`,
);

const NEXT_JUDGEMENT = statement(
  'next-judgement',
  `
    SELECT judge_at AS at FROM punctual.occurrences WHERE judge_at IS NOT NULL ORDER BY judge_at LIMIT 1`,
);

const FORGET_OCCURRENCES = leaderStatement(
  'forget-occurrences',
  `forgotten AS (
    DELETE FROM punctual.occurrences o WHERE o.ctid = ANY (ARRAY(
      SELECT f.ctid FROM punctual.occurrences f
      WHERE f.recorded_at < $4::bigint AND f.state <> 'waiting' AND ${WHILE_TERM_LASTS}
      ORDER BY f.recorded_at LIMIT $5::int))
    RETURNING 1
  ), answer AS (SELECT count(*) AS forgotten FROM forgotten),
  marked AS (
    UPDATE punctual.cluster SET ledger_known_since = $4::bigint
    WHERE ledger_known_since < $4::bigint AND EXISTS (SELECT 1 FROM forgotten)
  )`,
);

const LEDGER_KNOWN_SINCE = statement(
  'ledger-known-since',
  'SELECT ledger_known_since AS at FROM punctual.cluster',
);

const FORGET_SCHEDULES = leaderStatement(
  'forget-schedules',
  `forgotten AS (
    DELETE FROM punctual.schedules s WHERE s.ctid = ANY (ARRAY(
      SELECT f.ctid FROM punctual.schedules f WHERE f.deleted_at < $4::bigint AND ${WHILE_TERM_LASTS} LIMIT $5::int))
    RETURNING 1
  ), answer AS (SELECT count(*) AS forgotten FROM forgotten)`,
);

/** A row of the ledger with what is known about its job. */
export interface LedgerRow extends Record<string, unknown> {
  readonly at: number;
  readonly byHand: boolean;
  readonly state: StoredState;
  readonly reason: string | null;
  readonly job: string | null;
  readonly workflow: string | null;
  readonly batch: string | null;
  readonly lateAfter: number | null;
  readonly until: number | null;
  readonly count: number;
  readonly lateBy: number | null;
  /** The state of a job that has not started; null when it has, or when its history was removed. */
  readonly neverStarted: 'pending' | 'failed' | 'cancelled' | 'skipped' | null;
}

/** A position in the ledger; reading continues with older rows. */
export interface LedgerPosition {
  readonly at: number;
  readonly byHand: boolean;
}

/** Which rows of a ledger to read. */
export interface LedgerQuery {
  readonly from: number;
  readonly to: number;
  readonly before: LedgerPosition;
  readonly limit: number;
}

/**
 * A page of a schedule's ledger, newest first; a row for several occurrences is included if any is in the time span.
 */
export function readLedger(
  db: Queryable,
  schedule: string,
  { from, to, before, limit }: LedgerQuery,
  now: number,
): Promise<LedgerRow[]> {
  return run(db, READ_LEDGER, [now, schedule, from, to, before.at, before.byHand, limit]);
}

/** An occurrence that was judged. */
interface Judged extends Record<string, unknown> {
  readonly at: number;
  readonly state: StoredState;
  /** Null while its job has not started. */
  readonly lateBy: number | null;
  readonly tenant: string;
  readonly schedule: string;
  readonly job: string;
}

/** Judges whether the jobs of due occurrences started in time, and counts those that did not. */
export function judgeOccurrences(
  db: Queryable,
  term: TermKey,
  now: number,
  limit: number,
): Promise<Judged[]> {
  return runAsLeader(db, term, JUDGE, [now, limit]);
}

/** When the next occurrence is to be judged. */
export async function nextJudgement(db: Queryable): Promise<number | null> {
  return (await run<{ at: number }>(db, NEXT_JUDGEMENT, []))[0]?.at ?? null;
}

/** Rows that one statement deletes: a leader's statements must be short, whatever the backlog. */
const ROWS_PER_STEP = 5_000;

/** Deletes some of the occurrences recorded before the moment; answers whether there may be more. */
export async function forgetOccurrences(db: Queryable, term: TermKey, before: number): Promise<boolean> {
  const values = [before, ROWS_PER_STEP];
  const rows = await runAsLeader<{ forgotten: number }>(db, term, FORGET_OCCURRENCES, values);
  return rows[0]!.forgotten === ROWS_PER_STEP;
}

/** The moment since which the ledger is complete. */
export async function ledgerKnownSince(db: Queryable): Promise<number> {
  return (await run<{ at: number }>(db, LEDGER_KNOWN_SINCE, []))[0]!.at;
}

/** Removes some of the schedules deleted before the moment, whose ledger is gone; answers whether there may be more. */
export async function forgetSchedules(db: Queryable, term: TermKey, before: number): Promise<boolean> {
  const values = [before, ROWS_PER_STEP];
  const rows = await runAsLeader<{ forgotten: number }>(db, term, FORGET_SCHEDULES, values);
  return rows[0]!.forgotten === ROWS_PER_STEP;
}
