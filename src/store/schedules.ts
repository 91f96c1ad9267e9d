import { type Queryable, run, statement } from './database.js';
import { auditedStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import {
  bytesOf,
  isSmall,
  LARGE,
  type Portion,
  type PortionSize,
  portionOf,
  readPortion,
} from './portion.js';

/** Storing and reading schedules. Changes that people make are in change-schedule.ts. */

/** A schedule as it is stored. */
export interface ScheduleRow extends Record<string, unknown> {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  /** JSON text in the form of the public API, without the name. */
  readonly definition: string;
  /** The program that created it from its code; null when it was made in another way. */
  readonly managed_by: string | null;
  readonly paused: boolean;
  /** Every occurrence up to here is decided. */
  readonly watermark: number;
  readonly fire_at: number | null;
  readonly last_job: string | null;
  /** The workflow or batch that this is the first job of. */
  readonly last_workflow: string | null;
  readonly last_batch: string | null;
  readonly created_at: number;
  readonly created_by: string;
  readonly changed_at: number;
  readonly changed_by: string;
  readonly version: number;
  readonly deleted_at: number | null;
}

/** A schedule with its newest occurrence that is due. */
export interface ScheduleWithLast extends ScheduleRow {
  /** JSON text; null when there is none or it was left out, absent when it is part of `definition`. */
  readonly payload?: string | null;
  readonly without_payload?: boolean;
  readonly last_at: number | null;
  readonly last_run: string | null;
  readonly last_run_workflow: string | null;
  readonly last_run_batch: string | null;
}

const PLAIN_COLUMNS = `s.id, s.tenant, s.name, s.paused, s.watermark, s.fire_at, s.last_job, s.last_workflow,
  s.last_batch, s.created_at,
  s.created_by, s.changed_at, s.changed_by, s.version, s.deleted_at, s.managed_by`;

const COLUMNS = `${PLAIN_COLUMNS}, s.definition`;

/** The definition as JSON that Postgres can parse. Only escapes can prevent that, and searching for them is cheap. */
const READABLE = `CASE WHEN s.definition::text LIKE '%\\\\u%' THEN punctual.readable(s.definition) ELSE s.definition END`;

/** The payload separate from the rest, so that a list can leave it out. */
const COLUMNS_APART = `${PLAIN_COLUMNS}, r.definition -> 'payload' AS payload,
  (SELECT json_object_agg(d.key, d.value) FROM json_each(r.definition) d WHERE d.key <> 'payload') AS definition`;

const LAST = `
  LEFT JOIN LATERAL (
    SELECT coalesce(o.until, o.at) AS last_at, o.job AS last_run, o.workflow AS last_run_workflow,
      o.batch AS last_run_batch FROM punctual.occurrences o
    WHERE o.schedule = s.id AND o.at <= $2 AND NOT o.by_hand ORDER BY o.at DESC LIMIT 1) o ON true`;

const CREATE_SCHEDULE = auditedStatement(
  'create-schedule',
  `answer AS (
    INSERT INTO punctual.schedules (id, tenant, name, definition, paused, watermark, fire_at, created_at, created_by,
      changed_at, changed_by, managed_by)
    SELECT $4::uuid, $5::text, $6::text, $7::json, $8::boolean, $9::bigint, $10::bigint, $9, $11::text, $9, $11, $12::text
    WHERE ${WHILE_TERM_LASTS}
    ON CONFLICT (tenant, name) WHERE deleted_at IS NULL DO NOTHING
    RETURNING id
  )`,
);

const FIND_SCHEDULE = statement(
  'find-schedule',
  `SELECT ${COLUMNS} FROM punctual.schedules s WHERE s.tenant = $1 AND s.name = $2 AND s.deleted_at IS NULL`,
);

const READ_SCHEDULE = statement(
  'read-schedule',
  `
    SELECT ${COLUMNS}, o.last_at, o.last_run, o.last_run_workflow, o.last_run_batch FROM punctual.schedules s ${LAST}
    WHERE s.tenant = $1 AND s.name = $3 AND s.deleted_at IS NULL`,
);

const PAYLOAD_SHOWN = `(payload IS NULL OR $6::boolean OR ${isSmall('payload', LARGE)})`;

const LIST_SCHEDULES = statement(
  'list-schedules',
  portionOf(
    `SELECT *, ${bytesOf('definition')} + ${bytesOf('payload')} AS bytes FROM (
       SELECT ${PLAIN_COLUMNS}, definition, last_at, last_run, last_run_workflow, last_run_batch, NOT ${PAYLOAD_SHOWN} AS without_payload,
         CASE WHEN ${PAYLOAD_SHOWN} THEN payload END AS payload
       FROM (
         SELECT ${COLUMNS_APART}, o.last_at, o.last_run, o.last_run_workflow, o.last_run_batch FROM punctual.schedules s
         CROSS JOIN LATERAL (SELECT ${READABLE} AS definition) r ${LAST}
         WHERE s.tenant = $1 AND s.name > $3 AND s.deleted_at IS NULL ORDER BY s.name LIMIT $4::int + 1) s
       OFFSET 0) r`,
    'name',
    { rows: '$4', bytes: '$5' },
  ),
);

/** The schedule of that name, or the one that had it last. */
const FIND_WITH_LEDGER = statement(
  'find-schedule-with-ledger',
  `
    (SELECT ${COLUMNS} FROM punctual.schedules s WHERE s.tenant = $1 AND s.name = $2 AND s.deleted_at IS NULL)
    UNION ALL
    (SELECT ${COLUMNS} FROM punctual.schedules s WHERE s.tenant = $1 AND s.name = $2 AND s.deleted_at IS NOT NULL
     ORDER BY s.deleted_at DESC LIMIT 1)
    LIMIT 1`,
);

const LIST_MANAGED = statement(
  'list-managed-schedules',
  `
    SELECT s.name FROM punctual.schedules s
    WHERE s.tenant = $1 AND s.managed_by = $2 AND s.name > $3 AND s.deleted_at IS NULL
    ORDER BY s.name LIMIT $4`,
);

const READ_DUE = statement(
  'read-due-schedules',
  `
    SELECT ${COLUMNS} FROM (
      SELECT s.*, sum(pg_column_size(s.definition)) OVER (ORDER BY s.fire_at, s.id) - pg_column_size(s.definition)
        AS bytes_before
      FROM (SELECT * FROM punctual.schedules WHERE fire_at <= $1 ORDER BY fire_at LIMIT $2) s) s
    WHERE s.bytes_before < $3`,
);

const NEXT_FIRE = statement(
  'next-fire',
  'SELECT fire_at AS at FROM punctual.schedules WHERE fire_at IS NOT NULL ORDER BY fire_at LIMIT 1',
);

/** A schedule to be stored. */
interface NewSchedule {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly definition: string;
  readonly paused: boolean;
  readonly fireAt: number | null;
  readonly createdAt: number;
  readonly createdBy: string;
  readonly managedBy: string | null;
}

/** Stores a new schedule, whose occurrences are all in the future; answers false when its name is taken. */
export async function createSchedule(db: Queryable, term: TermKey, schedule: NewSchedule): Promise<boolean> {
  const rows = await runAsLeader(db, term, CREATE_SCHEDULE, [
    schedule.id,
    schedule.tenant,
    schedule.name,
    schedule.definition,
    schedule.paused,
    schedule.createdAt,
    schedule.fireAt,
    schedule.createdBy,
    schedule.managedBy,
  ]);
  return rows.length > 0;
}

/** The schedule of that name. */
export async function findSchedule(db: Queryable, tenant: string, name: string): Promise<ScheduleRow | null> {
  return (await run<ScheduleRow>(db, FIND_SCHEDULE, [tenant, name]))[0] ?? null;
}

/** The schedule of that name, or the newest deleted one, whose ledger is still there. */
export async function findScheduleWithLedger(
  db: Queryable,
  tenant: string,
  name: string,
): Promise<ScheduleRow | null> {
  return (await run<ScheduleRow>(db, FIND_WITH_LEDGER, [tenant, name]))[0] ?? null;
}

/** The schedule of that name with its newest occurrence. */
export async function readSchedule(
  db: Queryable,
  tenant: string,
  name: string,
  now: number,
): Promise<ScheduleWithLast | null> {
  return (await run<ScheduleWithLast>(db, READ_SCHEDULE, [tenant, now, name]))[0] ?? null;
}

/** A portion of a tenant's schedules by name; large payloads are left out unless they are requested. */
export function listSchedules(
  db: Queryable,
  tenant: string,
  { after, withPayloads }: { readonly after: string; readonly withPayloads: boolean },
  size: PortionSize,
  now: number,
): Promise<Portion<ScheduleWithLast>> {
  return readPortion(db, LIST_SCHEDULES, [tenant, now, after, size.rows, size.bytes, withPayloads]);
}

/** Names of the schedules that are in the code of `owner`, in order, after the given one. */
export async function listManaged(
  db: Queryable,
  tenant: string,
  owner: string,
  after: string,
  limit: number,
): Promise<string[]> {
  const rows = await run<{ name: string }>(db, LIST_MANAGED, [tenant, owner, after, limit]);
  return rows.map(({ name }) => name);
}

/** Schedules whose firing time has come, up to a number of rows and of bytes of their definitions. */
export function readDueSchedules(
  db: Queryable,
  now: number,
  limit: number,
  bytes: number,
): Promise<ScheduleRow[]> {
  return run(db, READ_DUE, [now, limit, bytes]);
}

/** The next firing time of all schedules; null when there is none. */
export async function nextFire(db: Queryable): Promise<number | null> {
  return (await run<{ at: number }>(db, NEXT_FIRE, []))[0]?.at ?? null;
}

const COUNT_SCHEDULES = statement(
  'count-schedules',
  `
    SELECT count(*) AS schedules FROM (
      SELECT 1 FROM punctual.schedules s WHERE s.tenant = $1::text AND s.deleted_at IS NULL LIMIT $2::bigint) counted`,
);

/** How many schedules a tenant has, but no more than the number that matters. */
export async function countSchedules(db: Queryable, tenant: string, most: number): Promise<number> {
  const [row] = await run<{ schedules: number }>(db, COUNT_SCHEDULES, [tenant, most]);
  return row!.schedules;
}
