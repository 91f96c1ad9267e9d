import { stands } from '../host/test-switches.js';
import { isLockTaken, type Queryable, run, statement } from './database.js';
import type { TermKey } from './leader-statement.js';

/**
 * The lease of a shard. Its statements use the database's clock only (`clock_timestamp()`, which moves while
 * a statement waits), READ COMMITTED, and check the state again inside the UPDATE.
 */

/** A lease that was lost goes on after the last term on record: an epoch is never given twice. */
const ENSURE = statement(
  'ensure-lease',
  `
    INSERT INTO punctual.leases (shard, epoch, holder, holder_url, expires_at)
    SELECT $1, coalesce((SELECT max(epoch) FROM punctual.terms WHERE shard = $1), 0), '', '', 'epoch'
    WHERE NOT EXISTS (SELECT 1 FROM punctual.leases WHERE shard = $1)
    ON CONFLICT DO NOTHING`,
);

/**
 * Whether the session of the holder is gone. If the start of a session with its pid is hidden, because it belongs to
 * another role, it may be that session or a later one with the same pid: then only expiry decides.
 */
const SESSION_GONE = `
  l.session_pid IS NOT NULL AND l.session_start IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM pg_stat_activity a
    WHERE a.pid = l.session_pid AND (a.backend_start = l.session_start OR a.backend_start IS NULL))`;

/** Differs after a restart of the server, and on a replica that replaced it. */
const SERVER_STARTED_AT = '(extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint';

/** Answers a row even if no node has written one yet: nobody holds the lease then. */
const LOOK = statement(
  'look-at-lease',
  `
    SELECT coalesce(l.epoch, 0) AS epoch, coalesce(l.holder, '') AS holder, coalesce(l.holder_url, '') AS "holderUrl",
      coalesce((extract(epoch FROM l.expires_at) * 1000)::bigint, 0) AS "expiresAt",
      coalesce(l.expires_at < clock_timestamp(), true) AS expired,
      (${SESSION_GONE}) AS "sessionGone",
      (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now,
      ${SERVER_STARTED_AT} AS "serverStartedAt"
    FROM (SELECT $1::int AS shard) asked LEFT JOIN punctual.leases l USING (shard)`,
);

/**
 * The lock of a takeover. It comes before the UPDATE because share lockers would overtake a waiting UPDATE for ever; it is only
 * asked for once the term was seen to be over, because a queued lock stalls a healthy leader.
 */
export const LOCK_LEASES = 'LOCK TABLE punctual.leases IN EXCLUSIVE MODE';

/** The term is ours already, or over; always true when tests have removed this fence. */
const TO_BE_HAD = stands('takeover')
  ? `l.holder = $2 OR l.expires_at < clock_timestamp() OR (${SESSION_GONE})`
  : 'true';

const NOW_MS = 'floor(extract(epoch FROM clock_timestamp()) * 1000)';

/** Takes the term and records it in one round trip, because nobody leads meanwhile. */
const TAKE = statement(
  'take-term',
  `
    WITH taken AS (
      UPDATE punctual.leases l SET
        epoch = greatest(l.epoch, $4::bigint) + 1, holder = $2, holder_url = $3, session_pid = $5::int,
        session_start = (SELECT a.backend_start FROM pg_stat_activity a WHERE a.pid = $5::int),
        expires_at = clock_timestamp() + $6::bigint * interval '1 millisecond'
      WHERE l.shard = $1 AND (${TO_BE_HAD})
      RETURNING l.epoch
    ), counted AS (
      INSERT INTO punctual.tallies (at, tenant, leader_elections) SELECT ${NOW_MS}, '', 1 FROM taken
    ), recorded AS (
      INSERT INTO punctual.terms (shard, epoch, holder, reason, taken_at)
      SELECT $1, epoch, $2, $7, ${NOW_MS} FROM taken
      ON CONFLICT DO NOTHING
    )
    SELECT epoch FROM taken`,
);

/** Changes no key column, so renewals and fenced writes never wait for each other. */
const RENEW = statement(
  'renew-term',
  `
    UPDATE punctual.leases SET expires_at = clock_timestamp() + $4::bigint * interval '1 millisecond'
    WHERE shard = $1 AND epoch = $2 AND holder = $3 AND expires_at > clock_timestamp()
    RETURNING (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now, ${SERVER_STARTED_AT} AS "serverStartedAt"`,
);

const RELEASE = statement(
  'release-term',
  `
    UPDATE punctual.leases SET expires_at = 'epoch', session_pid = NULL
    WHERE shard = $1 AND epoch = $2 AND holder = $3 RETURNING epoch`,
);

/**
 * Terminates the fenced writes and renewals that a takeover waits for; in this database only, because clones of a
 * database share the OIDs of their tables. If the session no longer waits, nobody blocks it and nobody is terminated,
 * least of all writers of its own new term. Only granted locks count, because sessions that wait ahead of it are
 * standbys too; and a holder of the ExclusiveLock is spared, because it is a standby that takes over.
 */
const END_BLOCKERS = statement(
  'end-lease-blockers',
  `
    SELECT pg_terminate_backend(l.pid) FROM pg_locks l
    JOIN pg_database d ON d.oid = l.database AND d.datname = current_database()
    WHERE l.pid = ANY ((SELECT pg_blocking_pids($1))::int[]) AND l.relation = 'punctual.leases'::regclass AND l.granted
    GROUP BY l.pid
    HAVING bool_or(l.mode IN ('RowShareLock', 'RowExclusiveLock')) AND NOT bool_or(l.mode = 'ExclusiveLock')`,
);

const SESSION = statement('session-pid', 'SELECT pg_backend_pid() AS pid');

/** The pid of the server process behind the connection. */
export async function sessionPid(db: Queryable): Promise<number> {
  const rows = await run<{ pid: number }>(db, SESSION, []);
  return rows[0]!.pid;
}

/** The lease as a standby reads it. */
export interface LeaseView extends Record<string, unknown> {
  readonly epoch: number;
  readonly holder: string;
  readonly holderUrl: string;
  readonly expiresAt: number | null;
  readonly expired: boolean;
  readonly sessionGone: boolean;
  readonly now: number;
  readonly serverStartedAt: number;
}

/** Inserts the shard's row when the database is new. */
export async function ensureLease(db: Queryable, shard: number): Promise<void> {
  await run(db, ENSURE, [shard]);
}

/** Who leads, and whether that term is over; takes no lock. */
export async function lookAtLease(db: Queryable, shard: number): Promise<LeaseView> {
  const rows = await run<LeaseView>(db, LOOK, [shard]);
  return rows[0]!;
}

/**
 * Takes the lock of a takeover without waiting; answers false if it is not free, and the transaction has failed then.
 */
export async function lockLeasesNow(db: Queryable): Promise<boolean> {
  try {
    await db.query(`${LOCK_LEASES} NOWAIT`);
    return true;
  } catch (error) {
    if (isLockTaken(error)) return false;
    throw error;
  }
}

/** A node that tries to take the term. */
export interface Candidate {
  readonly shard: number;
  readonly holder: string;
  readonly holderUrl: string;
  /** The session whose end proves that the holder is gone; null behind a pooler. */
  readonly sessionPid: number | null;
  /** An epoch that the new one must exceed. */
  readonly aboveEpoch: number;
  readonly ttlMs: number;
  readonly reason: string;
}

/** Takes the term if it is over or already ours; answers with its epoch or null. Must run inside a transaction. */
export async function takeTerm(db: Queryable, candidate: Candidate): Promise<number | null> {
  await db.query(LOCK_LEASES);
  const rows = await run<{ epoch: number }>(db, TAKE, [
    candidate.shard,
    candidate.holder,
    candidate.holderUrl,
    candidate.aboveEpoch,
    candidate.sessionPid,
    candidate.ttlMs,
    candidate.reason,
  ]);
  return rows[0]?.epoch ?? null;
}

/** The answer to a renewal: the database's time, and when its server was started. */
interface Renewal extends Record<string, unknown> {
  readonly now: number;
  readonly serverStartedAt: number;
}

/** Renews the term; answers null when it is over. */
export async function renewTerm(db: Queryable, term: TermKey, ttlMs: number): Promise<Renewal | null> {
  const rows = await run<Renewal>(db, RENEW, [term.shard, term.epoch, term.holder, ttlMs]);
  return rows[0] ?? null;
}

/** Gives the term up, so that another node takes over at once. */
export async function releaseTerm(db: Queryable, term: TermKey): Promise<void> {
  await run(db, RELEASE, [term.shard, term.epoch, term.holder]);
}

/** Terminates the sessions of the old term that the given session waits for, so that a hung leader cannot block it. */
export async function endLeaseBlockers(db: Queryable, waitingPid: number): Promise<void> {
  await run(db, END_BLOCKERS, [waitingPid]);
}
