import { type Queryable, run, statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { type Portion, type PortionSize, portionOf, readPortion } from './portion.js';

/**
 * Worker sessions as stored for the next leader and the API. Heartbeats are written to these rows rarely and in bulk.
 */

const COLUMNS = `id, tenant, name, state, registration, registered_at AS "registeredAt", last_seen AS "lastSeen", operator`;

const ADD_WORKER = leaderStatement(
  'add-worker',
  `answer AS (
    INSERT INTO punctual.workers (id, tenant, name, state, registration, registered_at, last_seen, operator)
    SELECT $4::uuid, $5::text, $6::text, 'alive', $7::json, $8::bigint, $8::bigint, $9::boolean WHERE ${WHILE_TERM_LASTS}
    RETURNING id
  )`,
);

const SEE_WORKERS = leaderStatement(
  'see-workers',
  `answer AS (
    UPDATE punctual.workers w SET last_seen = u.last_seen, state = u.state
    FROM unnest($4::uuid[], $5::bigint[], $6::text[]) u(id, last_seen, state)
    WHERE w.id = u.id AND ${WHILE_TERM_LASTS}
    RETURNING w.id
  )`,
);

const FORGET_WORKERS = leaderStatement(
  'forget-workers',
  `answer AS (
    DELETE FROM punctual.workers w WHERE w.id = ANY ($4::uuid[]) AND ${WHILE_TERM_LASTS} RETURNING w.id
  )`,
);

/** Bounds the number too, because a worker that keeps restarting leaves a row each time. */
const FORGET_DEAD_WORKERS = leaderStatement(
  'forget-dead-workers',
  `forgotten AS (
    DELETE FROM punctual.workers w WHERE w.id = ANY (ARRAY(
      SELECT d.id FROM (
        SELECT id, last_seen, row_number() OVER (PARTITION BY tenant ORDER BY id DESC) AS place
        FROM punctual.workers WHERE state = 'dead') d
      WHERE (d.last_seen < $4::bigint OR d.place > $5::int) AND ${WHILE_TERM_LASTS} LIMIT $6::int))
    RETURNING 1
  ), answer AS (SELECT count(*) AS forgotten FROM forgotten)`,
);

/** $1 is null for an operator who is shown the sessions of all tenants. A tenant is not shown those of operators. */
const seenBy = (isTenant: string) =>
  `($1::text IS NULL OR tenant = $1) AND NOT (${isTenant}::boolean AND operator)`;

const WEIGHED = `octet_length(registration::text) + 256 AS bytes`;

const READ_WORKERS = statement(
  'read-workers',
  portionOf(
    `SELECT ${COLUMNS}, ${WEIGHED} FROM punctual.workers
     WHERE state <> 'dead' AND id > $1::uuid ORDER BY id LIMIT $2::int + 1`,
    'id',
    { rows: '$2', bytes: '$3' },
  ),
);

const LIST_WORKERS = statement(
  'list-workers',
  portionOf(
    `SELECT ${COLUMNS}, ${WEIGHED} FROM punctual.workers
     WHERE ${seenBy('$5')} AND id < $2::uuid ORDER BY id DESC LIMIT $3::int + 1`,
    'id DESC',
    { rows: '$3', bytes: '$4' },
  ),
);

const FIND_WORKER = statement(
  'find-worker',
  `SELECT ${COLUMNS} FROM punctual.workers WHERE ${seenBy('$3')} AND id = $2::uuid`,
);

/** A stored worker session. */
export interface WorkerRow extends Record<string, unknown> {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly state: 'alive' | 'draining' | 'dead';
  /** The registration as JSON text. */
  readonly registration: string;
  readonly registeredAt: number;
  readonly lastSeen: number;
  /** Whether it belongs to the operator. */
  readonly operator: boolean;
}

/** Stores a new session. */
export async function addWorker(
  db: Queryable,
  term: TermKey,
  worker: {
    readonly id: string;
    readonly tenant: string;
    readonly name: string;
    readonly registration: string;
    /** Whether it belongs to the operator; default false. */
    readonly operator?: boolean;
  },
  now: number,
): Promise<void> {
  const { id, tenant, name, registration, operator = false } = worker;
  await runAsLeader(db, term, ADD_WORKER, [id, tenant, name, registration, now, operator]);
}

/** Writes when sessions were last seen, and their states. */
export async function seeWorkers(
  db: Queryable,
  term: TermKey,
  workers: readonly { id: string; lastSeen: number; state: string }[],
): Promise<void> {
  await runAsLeader(db, term, SEE_WORKERS, [
    workers.map((worker) => worker.id),
    workers.map((worker) => worker.lastSeen),
    workers.map((worker) => worker.state),
  ]);
}

/** Deletes these sessions. */
export async function forgetWorkers(db: Queryable, term: TermKey, ids: readonly string[]): Promise<void> {
  await runAsLeader(db, term, FORGET_WORKERS, [ids]);
}

/** Rows that one statement deletes: a leader's statements must be short, whatever the backlog. */
const ROWS_PER_STEP = 1_000;

/**
 * Deletes some of the dead sessions that were last seen before the moment, or that are not among the newest of their
 * tenant; answers whether there may be more.
 */
export async function forgetDeadWorkers(
  db: Queryable,
  term: TermKey,
  seenBefore: number,
  keptPerTenant: number,
): Promise<boolean> {
  const values = [seenBefore, keptPerTenant, ROWS_PER_STEP];
  const rows = await runAsLeader<{ forgotten: number }>(db, term, FORGET_DEAD_WORKERS, values);
  return rows[0]!.forgotten === ROWS_PER_STEP;
}

const FIRST_ID = '00000000-0000-0000-0000-000000000000';
const NEWEST_ID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** A portion of the sessions that are not known to be dead, after the given id. */
export function readWorkers(
  db: Queryable,
  after: string | null,
  size: PortionSize,
): Promise<Portion<WorkerRow>> {
  return readPortion(db, READ_WORKERS, [after ?? FIRST_ID, size.rows, size.bytes]);
}

/** Who looks at sessions: a tenant at its own, an operator at those of one tenant, or with null at all. */
export interface WorkerViewer {
  readonly tenant: string | null;
  readonly operator: boolean;
}

/** A portion of the sessions that somebody is shown, newest first, including dead ones. */
export function listWorkers(
  db: Queryable,
  { tenant, operator }: WorkerViewer,
  after: string | null,
  size: PortionSize,
): Promise<Portion<WorkerRow>> {
  return readPortion(db, LIST_WORKERS, [tenant, after ?? NEWEST_ID, size.rows, size.bytes, !operator]);
}

/** The session with that id, if it is shown. */
export async function findWorker(
  db: Queryable,
  { tenant, operator }: WorkerViewer,
  id: string,
): Promise<WorkerRow | null> {
  return (await run<WorkerRow>(db, FIND_WORKER, [tenant, id, !operator]))[0] ?? null;
}
