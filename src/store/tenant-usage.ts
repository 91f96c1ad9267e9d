import { byIndex } from './batch-statement.js';
import { isLockTaken, type Pool, type Queryable, run, statement, withHotPlans } from './database.js';
import { RolledBackError } from './leader-statement.js';

/**
 * How many jobs a tenant has, for tenants with a quota of jobs. The row of a tenant holds at least as many as there are:
 *
 * - A submission adds its jobs in the transaction that stores them, and only while they fit. The row stays locked until that
 *   transaction ends, so that two submissions cannot both take the last room, on whatever nodes they are made.
 * - Jobs that the leader adds by itself are added to the row afterwards: they are counted, never refused.
 * - Ends are not subtracted. When there seems to be no room, the jobs are counted: with the row locked nobody is about to add
 *   any, and a statement that begins then sees all that were added before.
 *
 * So no count is on the way of a job that fits, ends cost nothing, and a count that is lost or late can only refuse too much for
 * a moment. It holds without a leader and through every change of leaders. None of these writes is fenced by a term: a
 * superseded leader can only have too much counted, or have it counted again.
 */

const TAKE_ROOM = statement(
  'take-room',
  `
    UPDATE punctual.tenant_usage u SET live = u.live + $2::bigint, later = u.later + $3::bigint
    FROM punctual.tenants t
    WHERE u.tenant = $1::text AND t.id = u.tenant AND u.live IS NOT NULL AND u.later IS NOT NULL
      AND ($2::bigint = 0 OR t.quota_live_jobs IS NULL OR u.live + $2::bigint <= t.quota_live_jobs)
      AND ($3::bigint = 0 OR t.quota_later_jobs IS NULL OR u.later + $3::bigint <= t.quota_later_jobs)
    RETURNING u.tenant`,
);

/** Locks the row of a tenant, to wait for those who have it locked. */
const AWAIT_USAGE = statement(
  'await-usage',
  `SELECT u.tenant FROM punctual.tenant_usage u WHERE u.tenant = $1::text FOR UPDATE`,
);

const LOCK_USAGE = statement(
  'lock-usage',
  `
    SELECT u.live, u.later, u.counted_at AS "countedAt", u.count_ms AS "countMs",
      t.quota_live_jobs AS "liveJobs", t.quota_later_jobs AS "laterJobs",
      floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now
    FROM punctual.tenant_usage u JOIN punctual.tenants t ON t.id = u.tenant
    WHERE u.tenant = $1::text FOR UPDATE OF u`,
);

/**
 * No more jobs are counted than matter: one more than the quota. Live jobs are found by the queues of the tenant. How long it takes
 * is measured in the database: the delays of a busy node must not make counts rare.
 */
const COUNT_JOBS = statement(
  'count-usage',
  `
    UPDATE punctual.tenant_usage u SET
      live = (SELECT count(*) FROM (
        SELECT 1 FROM punctual.queues q JOIN punctual.jobs j ON j.queue = q.id
        WHERE q.tenant = $1::text LIMIT $2::bigint + 1) l),
      later = (SELECT count(*) FROM (
        SELECT 1 FROM punctual.later l WHERE l.tenant = $1::text LIMIT $3::bigint + 1) l),
      counted_at = $4::bigint,
      count_ms = floor(extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000)
    WHERE u.tenant = $1::text
    RETURNING u.live, u.later`,
);

/**
 * Locks the rows of the tenants in $1. A statement about several tenants passes over those that are locked: while it waited for one,
 * the others would wait for it.
 */
const free = (locked: ' SKIP LOCKED' | '') => `free AS MATERIALIZED (
      SELECT u.tenant FROM unnest($1::text[]) a(tenant)
      JOIN punctual.tenant_usage u ON ${byIndex('u.tenant', 'a.tenant')} FOR UPDATE OF u${locked}
    )`;

/** Those of the tenants in $1 whose rows were locked. */
const LOCKED = `SELECT a.tenant FROM unnest($1::text[]) a(tenant)
    WHERE NOT (a.tenant = ANY (ARRAY(SELECT f.tenant FROM free f)))
      AND (SELECT true FROM punctual.tenant_usage u WHERE u.tenant = a.tenant)`;

const addUsageSql = (free: string) => `
    WITH ${free}, added AS (
      UPDATE punctual.tenant_usage u SET live = u.live + a.live, later = u.later + a.later
      FROM unnest($1::text[], $2::bigint[], $3::bigint[]) a(tenant, live, later)
      WHERE ${byIndex('u.tenant', 'a.tenant')} AND a.tenant = ANY (ARRAY(SELECT f.tenant FROM free f))
    ) ${LOCKED}`;
const ADD_USAGE = statement('add-usage', addUsageSql(free(' SKIP LOCKED')));
const ADD_USAGE_OF_ONE = statement('add-usage-of-one', addUsageSql(free('')));

const forgetUsageSql = (free: string) => `
    WITH ${free}, forgotten AS (
      UPDATE punctual.tenant_usage u SET live = NULL, later = NULL, counted_at = 0
      FROM free f WHERE ${byIndex('u.tenant', 'f.tenant')}
    ) ${LOCKED}`;
const FORGET_USAGE = statement('forget-usage', forgetUsageSql(free(' SKIP LOCKED')));
const FORGET_USAGE_OF_ONE = statement('forget-usage-of-one', forgetUsageSql(free('')));

/** Tenants of one statement. */
const TENANTS_AT_ONCE = 200;

/** Jobs by the tables they are stored in. */
export interface JobCounts {
  readonly live: number;
  readonly later: number;
}

/** A job that needs room: where it is stored says in which table. */
interface CountedJob {
  readonly row: { readonly id: string };
  readonly admitAt: number | null;
}

/** There is no room for the jobs by what is known; nothing was stored. */
export class NoRoomError extends RolledBackError {
  constructor(
    readonly tenant: string,
    readonly wanted: JobCounts,
    /** Those that need it. */
    readonly jobs: readonly CountedJob[],
  ) {
    super(`tenant ${tenant} has no room for jobs`);
    this.name = 'NoRoomError';
  }
}

/** Takes room for jobs inside the transaction that stores them; throws NoRoomError. Must be the last but the inserts. */
export async function takeRoom(
  db: Queryable,
  tenant: string,
  wanted: JobCounts,
  jobs: readonly CountedJob[] = [],
): Promise<void> {
  if (wanted.live + wanted.later === 0) return;
  const rows = await run(db, TAKE_ROOM, [tenant, wanted.live, wanted.later]);
  if (rows.length === 0) throw new NoRoomError(tenant, wanted, jobs);
}

/** How long the leader's connections wait for the row of a tenant. */
const SHORT_WAIT_MS = 25;

/** The row of the tenant is locked by others; nothing was stored. */
export class RoomLockedError extends RolledBackError {
  constructor(readonly tenant: string) {
    super(`the jobs of tenant ${tenant} are being counted or stored by others`);
    this.name = 'RoomLockedError';
  }
}

/**
 * The same on a connection of the leader, for which all tenants wait: it hardly waits for the row, which a count or a large bulk may
 * hold for long, and throws RoomLockedError. What follows in the transaction only inserts, and so waits for nobody.
 */
export const takeRoomSoon: typeof takeRoom = async (db, tenant, wanted, jobs) => {
  await db.query(`SET LOCAL lock_timeout = ${SHORT_WAIT_MS}`);
  await takeRoom(db, tenant, wanted, jobs).catch((error: unknown) => {
    throw isLockTaken(error) ? new RoomLockedError(tenant) : error;
  });
};

/** Waits until nobody has the row of a tenant locked; answers false if that takes longer than a lock may be waited for. */
export async function awaitRoom(pool: Pool, tenant: string): Promise<boolean> {
  try {
    await run(pool, AWAIT_USAGE, [tenant]);
    return true;
  } catch (error) {
    if (isLockTaken(error)) return false;
    throw error;
  }
}

/** A count may take this part of the time at most, so that a tenant at its limit cannot make the database count all day. */
const COUNT_SHARE = 20;
/** The least time between two counts. */
const COUNT_EVERY_MS = 250;

interface UsageRow extends Record<string, unknown> {
  readonly live: number | null;
  readonly later: number | null;
  readonly countedAt: number;
  readonly countMs: number;
  readonly liveJobs: number | null;
  readonly laterJobs: number | null;
  readonly now: number;
}

/** What is left for a tenant. */
export interface Room {
  readonly live: number;
  readonly later: number;
  readonly quotas: { readonly liveJobs: number | null; readonly laterJobs: number | null };
}

/** Counts the jobs of a tenant whose row is locked, and notes how many there are. */
export function countJobs(
  db: Queryable,
  tenant: string,
  { liveJobs, laterJobs }: Room['quotas'],
  now: number,
): Promise<UsageRow[]> {
  return run<UsageRow>(db, COUNT_JOBS, [tenant, liveJobs ?? 0, laterJobs ?? 0, now]);
}

/** Counts the jobs of a tenant unless that was done just now, and answers with the room; null if it has no quota of jobs. */
export function countRoom(pool: Pool, tenant: string): Promise<Room | null> {
  return withHotPlans(pool, async (db) => {
    const [row] = await run<UsageRow>(db, LOCK_USAGE, [tenant]);
    if (!row) return null;
    const { liveJobs, laterJobs, now, countedAt, countMs } = row;
    const isFresh = now - countedAt < Math.max(COUNT_EVERY_MS, COUNT_SHARE * countMs);
    const isKnown = row.live !== null && row.later !== null;
    const [used] =
      isKnown && isFresh && countedAt <= now
        ? [row]
        : await countJobs(db, tenant, { liveJobs, laterJobs }, now);
    const left = (limit: number | null, count: number | null) =>
      limit === null ? Number.POSITIVE_INFINITY : Math.max(0, limit - count!);
    return {
      live: left(liveJobs, used!.live),
      later: left(laterJobs, used!.later),
      quotas: { liveJobs, laterJobs },
    };
  });
}

/** Jobs of a tenant that were stored without asking for room. */
export type AddedCounts = JobCounts & { readonly tenant: string };

/**
 * Adds jobs; tenants without a quota of jobs are passed over. Answers with the tenants whose rows were locked, to which nothing was
 * added. Nobody waits for the row of another tenant.
 */
export function addUsage(db: Queryable, added: readonly AddedCounts[]): Promise<string[]> {
  return inPortions(added, (part) => run(db, ADD_USAGE, countsOf(part)));
}

/** The same for one tenant, whose row is waited for. */
export async function addUsageOfOne(db: Queryable, added: AddedCounts): Promise<void> {
  await run(db, ADD_USAGE_OF_ONE, countsOf([added]));
}

function countsOf(added: readonly AddedCounts[]): unknown[] {
  return [added.map((each) => each.tenant), added.map((each) => each.live), added.map((each) => each.later)];
}

async function inPortions<T>(
  items: readonly T[],
  work: (part: readonly T[]) => Promise<readonly { readonly tenant: string }[]>,
): Promise<string[]> {
  const locked: string[] = [];
  for (let from = 0; from < items.length; from += TENANTS_AT_ONCE)
    for (const { tenant } of await work(items.slice(from, from + TENANTS_AT_ONCE))) locked.push(tenant);
  return locked;
}

const COUNTED_TENANTS = statement('counted-tenants', `SELECT tenant FROM punctual.tenant_usage`);

/** The tenants with a quota of jobs. */
export async function countedTenants(db: Queryable): Promise<string[]> {
  return (await run<{ tenant: string }>(db, COUNTED_TENANTS, [])).map(({ tenant }) => tenant);
}

/**
 * Forgets what was counted of these tenants, so that jobs are counted anew before the next one is taken. Answers with those whose
 * rows were locked.
 */
export function forgetUsage(db: Queryable, tenants: readonly string[]): Promise<string[]> {
  return inPortions(tenants, (part) => run(db, FORGET_USAGE, [part]));
}

/** The same for one tenant, whose row is waited for. */
export async function forgetUsageOfOne(db: Queryable, tenant: string): Promise<void> {
  await run(db, FORGET_USAGE_OF_ONE, [[tenant]]);
}
