import type { OriginLimits } from '../core/limits.js';
import { assertTenant } from './assert-tenant.js';
import { type Queryable, run, statement } from './database.js';
import { auditedStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import type { Portion } from './portion.js';
import { rateColumns, rateOfRow } from './queues.js';

/** The limits of origins that somebody has set. */

/** A row; `concurrency` is null for the usual number, and 0 for no limit. */
export interface OriginLimitsRow extends Record<string, unknown> {
  readonly tenant: string;
  readonly origin: string;
  readonly concurrency: number | null;
  readonly rate_limit: number | null;
  readonly rate_per: number | null;
  readonly rate_burst: number | null;
}

/** The origins of a tenant that may have limits of their own. */
export const MAX_ORIGIN_LIMITS = 1_000;

const COLUMNS = 'tenant, origin, concurrency, rate_limit, rate_per, rate_burst';

const FIND = statement(
  'find-origin-limits',
  `SELECT ${COLUMNS} FROM punctual.origin_limits WHERE tenant = $1 AND origin = $2`,
);

const LIST = statement(
  'list-origin-limits',
  `SELECT ${COLUMNS} FROM punctual.origin_limits WHERE tenant = $1 AND origin > $2 ORDER BY origin LIMIT $3::int + 1`,
);

const LIMIT_ORIGIN = auditedStatement(
  'limit-origin',
  `answer AS (
    INSERT INTO punctual.origin_limits AS l (tenant, origin, concurrency, rate_limit, rate_per, rate_burst, changed_at)
    SELECT $4::text, $5::text, $6::int, $7::int, $8::bigint, $9::int, $10::bigint
    WHERE ${WHILE_TERM_LASTS} AND (
      EXISTS (SELECT 1 FROM punctual.origin_limits WHERE tenant = $4::text AND origin = $5::text)
      OR (SELECT count(*) FROM punctual.origin_limits WHERE tenant = $4::text) < ${MAX_ORIGIN_LIMITS})
    ON CONFLICT (tenant, origin) DO UPDATE SET concurrency = excluded.concurrency, rate_limit = excluded.rate_limit,
      rate_per = excluded.rate_per, rate_burst = excluded.rate_burst, changed_at = excluded.changed_at
    RETURNING ${COLUMNS}
  )`,
);

const UNLIMIT_ORIGIN = auditedStatement(
  'unlimit-origin',
  `answer AS (
    DELETE FROM punctual.origin_limits WHERE tenant = $4::text AND origin = $5::text AND ${WHILE_TERM_LASTS}
    RETURNING ${COLUMNS}
  )`,
);

/** The limits of one origin. */
export async function findOriginLimits(
  db: Queryable,
  tenant: string,
  origin: string,
): Promise<OriginLimitsRow | null> {
  const rows = await run<OriginLimitsRow>(db, FIND, [tenant, origin]);
  return rows[0] ?? null;
}

/** A portion of the limits of a tenant's origins, by name. */
export async function listOriginLimits(
  db: Queryable,
  tenant: string,
  after: string,
  limit: number,
): Promise<Portion<OriginLimitsRow>> {
  const rows = await run<OriginLimitsRow>(db, LIST, [tenant, after, limit]);
  for (const row of rows) assertTenant(tenant, row);
  return { rows: rows.slice(0, limit), more: rows.length > limit };
}

/** Sets the limits of an origin; answers null if the tenant has set those of too many. */
export async function limitOrigin(
  db: Queryable,
  term: TermKey,
  { tenant, origin }: { readonly tenant: string; readonly origin: string },
  { concurrency, rate }: OriginLimits,
  now: number,
): Promise<OriginLimitsRow | null> {
  const stored = concurrency === undefined ? null : (concurrency ?? 0);
  const values = [tenant, origin, stored, ...rateColumns(rate), now];
  const rows = await runAsLeader<OriginLimitsRow>(db, term, LIMIT_ORIGIN, values);
  return rows[0] ?? null;
}

/** Takes the limits of an origin away; answers whether it had any. */
export async function unlimitOrigin(
  db: Queryable,
  term: TermKey,
  tenant: string,
  origin: string,
): Promise<boolean> {
  return (await runAsLeader(db, term, UNLIMIT_ORIGIN, [tenant, origin])).length > 0;
}

/** The limits that a row says; null if it says none. */
export function limitsOfRow(row: Omit<OriginLimitsRow, 'tenant' | 'origin'>): OriginLimits | null {
  const rate = rateOfRow(row as Parameters<typeof rateOfRow>[0]);
  const concurrency = row.concurrency as number | null;
  if (concurrency === null && rate === null) return null;
  return { concurrency: concurrency === null ? undefined : concurrency || null, rate };
}
