import type { QueueLimits } from '../core/limits.js';
import type { Rate } from '../core/rate.js';
import { type Queryable, run, statement } from './database.js';
import {
  auditedStatement,
  leaderStatement,
  runAsLeader,
  type TermKey,
  WHILE_TERM_LASTS,
} from './leader-statement.js';
import type { NeedsRow, QueueRow } from './names.js';
import type { Portion } from './portion.js';

/** Reading queues and needs, and writing the limits of queues. */

const COLUMNS = `id, tenant, name, paused, created_at, weight, concurrency, key_concurrency, rate_limit, rate_per,
  rate_burst, full_at, debt`;

const READ_QUEUES = statement(
  'read-queues',
  `SELECT ${COLUMNS} FROM punctual.queues WHERE id = ANY($1::int[])`,
);

const READ_NEEDS = statement(
  'read-needs',
  `
    SELECT n.id, n.tenant, n.target, n.handler, n.labels, l.concurrency, l.rate_limit, l.rate_per, l.rate_burst
    FROM punctual.needs n
    LEFT JOIN LATERAL (
      SELECT * FROM punctual.origin_limits o
      WHERE n.target = 'http' AND o.tenant = n.tenant AND o.origin = n.handler LIMIT 1) l ON true
    WHERE n.id = ANY($1::int[])`,
);

const LIST_QUEUES = statement(
  'list-queues',
  `SELECT ${COLUMNS} FROM punctual.queues WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3::int + 1`,
);

const FIND_QUEUE = statement(
  'find-queue',
  `SELECT ${COLUMNS} FROM punctual.queues WHERE tenant = $1 AND name = $2`,
);

const PAUSE_QUEUE = auditedStatement(
  'pause-queue',
  `answer AS (
    UPDATE punctual.queues SET paused = $6::boolean
    WHERE tenant = $4::text AND name = $5::text AND paused <> $6::boolean AND ${WHILE_TERM_LASTS}
    RETURNING ${COLUMNS}
  )`,
);

type Queue = QueueRow & Record<string, unknown>;

/** The queues with these ids. */
export function readQueues(db: Queryable, ids: readonly number[]): Promise<Queue[]> {
  return run(db, READ_QUEUES, [ids]);
}

/** The needs with these ids. */
export function readNeeds(
  db: Queryable,
  ids: readonly number[],
): Promise<(NeedsRow & Record<string, unknown>)[]> {
  return run(db, READ_NEEDS, [ids]);
}

/** A portion of a tenant's queues by name. */
export async function listQueues(
  db: Queryable,
  tenant: string,
  after: string,
  limit: number,
): Promise<Portion<Queue>> {
  const rows = await run<Queue>(db, LIST_QUEUES, [tenant, after, limit]);
  return { rows: rows.slice(0, limit), more: rows.length > limit };
}

/** The queue of that name. */
export async function findQueue(db: Queryable, tenant: string, name: string): Promise<QueueRow | null> {
  const rows = await run<Queue>(db, FIND_QUEUE, [tenant, name]);
  return rows[0] ?? null;
}

/** Writes all limits of a queue at once, and makes the queue if it does not exist. */
const LIMIT_QUEUE = auditedStatement(
  'limit-queue',
  `answer AS (
    INSERT INTO punctual.queues (tenant, name, created_at, weight, concurrency, key_concurrency, rate_limit,
      rate_per, rate_burst)
    SELECT $4::text, $5::text, $6::bigint, $7::int, $8::int, $9::int, $10::int, $11::bigint, $12::int
    WHERE ${WHILE_TERM_LASTS}
    ON CONFLICT (tenant, name) DO UPDATE SET weight = excluded.weight, concurrency = excluded.concurrency,
      key_concurrency = excluded.key_concurrency, rate_limit = excluded.rate_limit, rate_per = excluded.rate_per,
      rate_burst = excluded.rate_burst
    RETURNING ${COLUMNS}
  )`,
);

/**
 * The token buckets that claims have drawn on: written in their transaction, so that a new leader continues with them.
 */
const SAVE_BUCKETS = leaderStatement(
  'save-buckets',
  `of_queues AS (
    UPDATE punctual.queues q SET full_at = u.full_at, debt = u.debt
    FROM unnest($4::int[], $5::bigint[], $6::int[]) u(id, full_at, debt) WHERE q.id = u.id AND ${WHILE_TERM_LASTS}
  ), answer AS (
    UPDATE punctual.tenants t SET full_at = u.full_at, debt = u.debt
    FROM unnest($7::text[], $8::bigint[], $9::int[]) u(id, full_at, debt) WHERE t.id = u.id AND ${WHILE_TERM_LASTS}
    RETURNING t.id
  )`,
);

/** Pauses or resumes a queue; answers null when it does not exist or is in that state already. */
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

/** The values of the three columns of a rate. */
export function rateColumns(rate: Rate | null): [number | null, number | null, number | null] {
  return rate ? [rate.limit, rate.perMs, rate.burst] : [null, null, null];
}

/** The rate of a row, if it has one. */
export function rateOfRow(row: {
  readonly rate_limit: number | null;
  readonly rate_per: number | null;
  readonly rate_burst: number | null;
}): Rate | null {
  const { rate_limit: limit, rate_per: perMs, rate_burst: burst } = row;
  return limit === null || perMs === null || burst === null ? null : { limit, perMs, burst };
}

/** Sets the limits of a queue, and makes it if it is new. */
export async function limitQueue(
  db: Queryable,
  term: TermKey,
  queue: { readonly tenant: string; readonly name: string },
  limits: QueueLimits,
  now: number,
): Promise<QueueRow> {
  const rows = await runAsLeader<Queue>(db, term, LIMIT_QUEUE, [
    queue.tenant,
    queue.name,
    now,
    limits.weight,
    limits.concurrency,
    limits.keyConcurrency,
    ...rateColumns(limits.rate),
  ]);
  return rows[0]!;
}

/** When a token bucket will be full again, and how many starts it is in debt for. */
export interface BucketMark {
  readonly fullAt: number;
  readonly debt: number;
}

/** The state of the token buckets of queues and tenants. */
export interface BucketState {
  readonly queues: ReadonlyMap<number, BucketMark>;
  readonly tenants: ReadonlyMap<string, BucketMark>;
}

/** Writes the state of token buckets. */
export async function saveBuckets(db: Queryable, term: TermKey, buckets: BucketState): Promise<void> {
  const columns = [buckets.queues, buckets.tenants].flatMap((marks) => {
    const values = [...marks.values()];
    return [[...marks.keys()], values.map(({ fullAt }) => fullAt), values.map(({ debt }) => debt)];
  });
  await runAsLeader(db, term, SAVE_BUCKETS, columns);
}
