import { type Queryable, run, type Statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import type { NeedsRow, QueueRow } from './names.js';

/** Queues and needs as the leader and the API read them. */

const COLUMNS = 'id, tenant, name, paused, created_at';

const READ_QUEUES: Statement = {
  name: 'read-queues',
  text: `SELECT ${COLUMNS} FROM punctual.queues WHERE id > $1`,
};

const READ_NEEDS: Statement = {
  name: 'read-needs',
  text: 'SELECT id, tenant, target, handler, labels FROM punctual.needs WHERE id > $1',
};

const LIST_QUEUES: Statement = {
  name: 'list-queues',
  text: `SELECT ${COLUMNS} FROM punctual.queues WHERE tenant = $1 ORDER BY name`,
};

const FIND_QUEUE: Statement = {
  name: 'find-queue',
  text: `SELECT ${COLUMNS} FROM punctual.queues WHERE tenant = $1 AND name = $2`,
};

const PAUSE_QUEUE = leaderStatement(
  'pause-queue',
  `answer AS (
    UPDATE punctual.queues SET paused = $6::boolean
    WHERE tenant = $4::text AND name = $5::text AND paused <> $6::boolean AND ${WHILE_TERM_LASTS}
    RETURNING ${COLUMNS}
  )`,
);

type Queue = QueueRow & Record<string, unknown>;

/** Queues with ids above the given one: a leader learns new queues without reading all again. */
export function readQueues(db: Queryable, aboveId: number): Promise<Queue[]> {
  return run(db, READ_QUEUES, [aboveId]);
}

export function readNeeds(db: Queryable, aboveId: number): Promise<(NeedsRow & Record<string, unknown>)[]> {
  return run(db, READ_NEEDS, [aboveId]);
}

export function listQueues(db: Queryable, tenant: string): Promise<Queue[]> {
  return run(db, LIST_QUEUES, [tenant]);
}

export async function findQueue(db: Queryable, tenant: string, name: string): Promise<QueueRow | null> {
  const rows = await run<Queue>(db, FIND_QUEUE, [tenant, name]);
  return rows[0] ?? null;
}

/** Pauses or resumes; null when the queue does not exist or is so already. */
export async function pauseQueue(
  db: Queryable,
  term: TermKey,
  tenant: string,
  name: string,
  paused: boolean,
): Promise<QueueRow | null> {
  const rows = await runAsLeader<Queue>(db, term, PAUSE_QUEUE, [tenant, name, paused]);
  return rows[0] ?? null;
}
