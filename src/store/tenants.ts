import type { TenantSettings } from '../core/limits.js';
import type { Quotas } from '../core/quotas.js';
import { type Queryable, run, statement } from './database.js';
import { auditedStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { rateColumns } from './queues.js';

/** Tenants with a name, a weight or a limit; a tenant without a row has the defaults. */

/** A stored tenant. */
export interface TenantRow extends Record<string, unknown> {
  readonly id: string;
  readonly name: string;
  readonly weight: number;
  readonly rate_limit: number | null;
  readonly rate_per: number | null;
  readonly rate_burst: number | null;
  /** When the tenant's token bucket will be full again. */
  readonly full_at: number;
  readonly debt: number;
  readonly created_at: number;
  readonly quota_live_jobs: number | null;
  readonly quota_later_jobs: number | null;
  readonly quota_schedules: number | null;
  readonly quota_queues: number | null;
  readonly quota_submissions_per_second: number | null;
  readonly quota_payload_bytes: number | null;
  readonly quota_artifact_bytes: number | null;
}

/** The columns of quotas, in the order of `quotaValues`. */
const QUOTA_COLUMNS =
  'quota_live_jobs, quota_later_jobs, quota_schedules, quota_queues, quota_submissions_per_second, quota_payload_bytes, quota_artifact_bytes';

const COLUMNS = `id, name, weight, rate_limit, rate_per, rate_burst, full_at, debt, created_at, ${QUOTA_COLUMNS}`;

const READ_TENANTS = statement(
  'read-tenants',
  `
    SELECT ${COLUMNS} FROM punctual.tenants
    WHERE id = ANY(ARRAY(SELECT DISTINCT q.tenant FROM punctual.queues q WHERE q.id = ANY($1::int[])))`,
);

const LIST_TENANTS = statement(
  'list-tenants',
  `SELECT ${COLUMNS} FROM punctual.tenants WHERE id > $1 ORDER BY id LIMIT $2`,
);

const FIND_TENANT = statement('find-tenant', `SELECT ${COLUMNS} FROM punctual.tenants WHERE id = $1`);

const ADD_TENANT = auditedStatement(
  'add-tenant',
  `answer AS (
    INSERT INTO punctual.tenants (id, name, created_at, weight, rate_limit, rate_per, rate_burst, ${QUOTA_COLUMNS})
    SELECT $4::text, $5::text, $6::bigint, $7::int, $8::int, $9::bigint, $10::int, $11::int, $12::int, $13::int,
      $14::int, $15::int, $16::int, $17::bigint
    WHERE ${WHILE_TERM_LASTS}
    ON CONFLICT (id) DO NOTHING
    RETURNING ${COLUMNS}
  )`,
);

const CHANGE_TENANT = auditedStatement(
  'change-tenant',
  `answer AS (
    UPDATE punctual.tenants SET name = $5::text, weight = $6::int, rate_limit = $7::int, rate_per = $8::bigint,
      rate_burst = $9::int,
      (${QUOTA_COLUMNS}) = ROW($10::int, $11::int, $12::int, $13::int, $14::int, $15::int, $16::bigint)
    WHERE id = $4::text AND ${WHILE_TERM_LASTS}
    RETURNING ${COLUMNS}
  )`,
);

/** The rows of the tenants of these queues. */
export function readTenantsOf(db: Queryable, queues: readonly number[]): Promise<TenantRow[]> {
  return run(db, READ_TENANTS, [queues]);
}

/** Tenants after the given id, in order. */
export function listTenants(db: Queryable, after: string, limit: number): Promise<TenantRow[]> {
  return run(db, LIST_TENANTS, [after, limit]);
}

/** The row of a tenant. */
export async function findTenant(db: Queryable, id: string): Promise<TenantRow | null> {
  return (await run<TenantRow>(db, FIND_TENANT, [id]))[0] ?? null;
}

/** Adds a tenant; answers null when the id is taken. */
export async function addTenant(
  db: Queryable,
  term: TermKey,
  tenant: { readonly id: string; readonly name: string },
  limits: TenantSettings,
  now: number,
): Promise<TenantRow | null> {
  const { weight, rate, quotas } = limits;
  const values = [tenant.id, tenant.name, now, weight, ...rateColumns(rate), ...quotaValues(quotas)];
  return (await runAsLeader<TenantRow>(db, term, ADD_TENANT, values))[0] ?? null;
}

/** Changes a tenant; answers null when there is none with this id. */
export async function changeTenant(
  db: Queryable,
  term: TermKey,
  tenant: { readonly id: string; readonly name: string },
  limits: TenantSettings,
): Promise<TenantRow | null> {
  const { weight, rate, quotas } = limits;
  const values = [tenant.id, tenant.name, weight, ...rateColumns(rate), ...quotaValues(quotas)];
  return (await runAsLeader<TenantRow>(db, term, CHANGE_TENANT, values))[0] ?? null;
}

function quotaValues(quotas: Quotas): (number | null)[] {
  const { liveJobs, laterJobs, schedules, queues, submissionsPerSecond, payloadBytes, artifactBytes } =
    quotas;
  return [liveJobs, laterJobs, schedules, queues, submissionsPerSecond, payloadBytes, artifactBytes];
}

/** The quotas of a row. */
export function quotasOfRow(row: TenantRow): Quotas {
  return {
    liveJobs: row.quota_live_jobs,
    laterJobs: row.quota_later_jobs,
    schedules: row.quota_schedules,
    queues: row.quota_queues,
    submissionsPerSecond: row.quota_submissions_per_second,
    payloadBytes: row.quota_payload_bytes,
    artifactBytes: row.quota_artifact_bytes,
  };
}

/** How often quotas were changed so far, and those of the given tenants that have any. */
const FIND_QUOTAS = statement(
  'find-quotas',
  `
    SELECT v.version, t.* FROM punctual.quotas_version v LEFT JOIN (
      SELECT ${COLUMNS} FROM punctual.tenants WHERE id = ANY($1::text[])) t ON true`,
);

/** Reads the number of changes of quotas, and the quotas of tenants in the same snapshot. */
export async function findQuotas(
  db: Queryable,
  tenants: readonly string[],
): Promise<{ readonly version: number; readonly found: ReadonlyMap<string, Quotas> }> {
  const rows = await run<TenantRow & { version: number }>(db, FIND_QUOTAS, [tenants]);
  const found = rows.filter(({ id }) => id !== null).map((row) => [row.id, quotasOfRow(row)] as const);
  return { version: rows[0]!.version, found: new Map(found) };
}
