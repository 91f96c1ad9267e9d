import { type Queryable, run, type Statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** Worker sessions as the next leader and the API find them. Heartbeats reach these rows rarely and in bulk. */

const COLUMNS = `id, tenant, name, state, registration, registered_at AS "registeredAt", last_seen AS "lastSeen"`;

const ADD_WORKER = leaderStatement(
  'add-worker',
  `answer AS (
    INSERT INTO punctual.workers (id, tenant, name, state, registration, registered_at, last_seen)
    SELECT $4::uuid, $5::text, $6::text, 'alive', $7::json, $8::bigint, $8::bigint WHERE ${WHILE_TERM_LASTS}
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
    DELETE FROM punctual.workers w
    WHERE ((w.state = 'dead' AND w.last_seen < $4::bigint) OR w.id = ANY ($5::uuid[])) AND ${WHILE_TERM_LASTS}
    RETURNING w.id
  )`,
);

const READ_WORKERS: Statement = {
  name: 'read-workers',
  text: `SELECT ${COLUMNS} FROM punctual.workers WHERE state <> 'dead'`,
};

const LIST_WORKERS: Statement = {
  name: 'list-workers',
  text: `SELECT ${COLUMNS} FROM punctual.workers WHERE tenant = $1 ORDER BY id LIMIT 10000`,
};

export interface WorkerRow extends Record<string, unknown> {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly state: 'alive' | 'draining' | 'dead';
  /** The registration as JSON text. */
  readonly registration: string;
  readonly registeredAt: number;
  readonly lastSeen: number;
}

export async function addWorker(
  db: Queryable,
  term: TermKey,
  worker: { id: string; tenant: string; name: string; registration: string },
  now: number,
): Promise<void> {
  await runAsLeader(db, term, ADD_WORKER, [worker.id, worker.tenant, worker.name, worker.registration, now]);
}

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

/** Forgets the named sessions, and dead ones last seen before the moment. */
export async function forgetWorkers(
  db: Queryable,
  term: TermKey,
  deadBefore: number,
  ids: readonly string[],
): Promise<void> {
  await runAsLeader(db, term, FORGET_WORKERS, [deadBefore, ids]);
}

/** All sessions that are not known to be dead. */
export function readWorkers(db: Queryable): Promise<WorkerRow[]> {
  return run(db, READ_WORKERS, []);
}

export function listWorkers(db: Queryable, tenant: string): Promise<WorkerRow[]> {
  return run(db, LIST_WORKERS, [tenant]);
}
