import { least } from '../core/long-lists.js';
import type { Queryable } from './database.js';
import type { TimeSpan } from './keep-history.js';

/**
 * History and logs are partitioned by day (UTC). Partitions are made ahead by CREATE … LIKE and ATTACH, which
 * do not wait for readers; CREATE … PARTITION OF, CONCURRENTLY, a default partition or DROP behind a reader
 * would stall all finishing.
 */

const DAY_MS = 86_400_000;
/** How many days ahead partitions are made, so that they exist even after a week without a leader. */
const DAYS_AHEAD = 14;

const PARTITIONED = ['job_history', 'job_logs'] as const;
type Partitioned = (typeof PARTITIONED)[number];

/** An arbitrary number for the advisory lock of making partitions. */
const LOCK = 7_301_112_010;

const LIST = `
  SELECT child.relname AS name
  FROM pg_inherits
  JOIN pg_class child ON child.oid = inhrelid
  WHERE inhparent = $1::regclass`;

/** Tables that are named like partitions but are not attached. */
const LIST_DETACHED = `
  SELECT relname AS name FROM pg_class
  WHERE relnamespace = 'punctual'::regnamespace AND relkind = 'r' AND NOT relispartition AND relname ~ $1`;

/** The name of the partition that holds a moment. */
export function partitionName(table: Partitioned, atMs: number): string {
  return `${table}_${new Date(atMs).toISOString().slice(0, 10).replaceAll('-', '')}`;
}

function dayOf(name: string): number {
  const digits = name.slice(-8);
  return Date.parse(`${digits.slice(0, 4)}-${digits.slice(4, 6)}-${digits.slice(6)}T00:00:00Z`);
}

async function listPartitions(db: Queryable, table: Partitioned): Promise<string[]> {
  const { rows } = await db.query(LIST, [`punctual.${table}`]);
  return rows.map((row: { name: string }) => row.name);
}

/** Makes the partitions from yesterday to two weeks ahead; safe to repeat and to run concurrently. */
export async function keepPartitions(db: Queryable, nowMs: number): Promise<void> {
  for (const table of PARTITIONED) {
    const present = new Set(await listPartitions(db, table));
    const today = dayBegin(nowMs);
    for (let day = today - DAY_MS; day <= today + DAYS_AHEAD * DAY_MS; day += DAY_MS) {
      if (!present.has(partitionName(table, day))) await makePartition(db, table, day);
    }
  }
}

/**
 * Makes the partition of one day; also used when an insert finds none. Serialized by a lock: CREATE TABLE IF NOT EXISTS
 * fails when two sessions make the same table at the same moment, and a table can be attached only once.
 */
export async function makePartition(db: Queryable, table: Partitioned, atMs: number): Promise<void> {
  const day = dayBegin(atMs);
  const name = partitionName(table, day);
  await db.query(`
    DO $make$ BEGIN
      PERFORM pg_advisory_xact_lock(${LOCK});
      IF NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = to_regclass('punctual.${name}')) THEN
        CREATE TABLE IF NOT EXISTS punctual.${name}
          (LIKE punctual.${table} INCLUDING DEFAULTS INCLUDING INDEXES);
        ${table === 'job_history' ? `PERFORM punctual.limit_statistics('punctual.${name}');` : ''}
        ALTER TABLE punctual.${table} ATTACH PARTITION punctual.${name}
          FOR VALUES FROM (${day}) TO (${day + DAY_MS});
      END IF;
    END $make$`);
}

/** The table of one day. */
export interface DayTable {
  readonly table: Partitioned;
  readonly name: string;
}

/** The moments that a day's table holds. */
export function spanOf({ name }: DayTable): TimeSpan {
  return { from: dayOf(name), to: dayOf(name) + DAY_MS };
}

/** The beginning of the day (UTC) that holds a moment. */
export function dayBegin(atMs: number): number {
  return Math.floor(atMs / DAY_MS) * DAY_MS;
}

/** When the oldest day of history that can be read began. */
export async function oldestDay(db: Queryable): Promise<number> {
  return least((await listPartitions(db, 'job_history')).map(dayOf));
}

/** Partitions that lie wholly before the moment, oldest first. */
export function partitionsBefore(db: Queryable, atMs: number): Promise<DayTable[]> {
  return daysBefore(atMs, (table) => listPartitions(db, table));
}

/** Days wholly before the moment that were detached and not dropped yet, oldest first. */
export function detachedBefore(db: Queryable, atMs: number): Promise<DayTable[]> {
  return daysBefore(atMs, async (table) => {
    const { rows } = await db.query(LIST_DETACHED, [`^${table}_[0-9]{8}$`]);
    return rows.map((row: { name: string }) => row.name);
  });
}

async function daysBefore(
  atMs: number,
  list: (table: Partitioned) => Promise<string[]>,
): Promise<DayTable[]> {
  const found: DayTable[] = [];
  for (const table of PARTITIONED) {
    for (const name of await list(table)) {
      if (dayOf(name) + DAY_MS <= atMs) found.push({ table, name });
    }
  }
  return found.sort((a, b) => dayOf(a.name) - dayOf(b.name));
}
