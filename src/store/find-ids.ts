import type { MatchingIds } from '../core/wire.js';
import { type Queryable, run, type Statement, statement } from './database.js';
import { allEnded } from './ended-places.js';
import { earliestEnd } from './read-job.js';

/** Finding whole ids by their beginning. A beginning is a range of ids, so every place is read from its index. */

/**
 * The index of the live jobs does not begin with the tenant. So that the jobs of other tenants cannot make the search
 * long, no more than these are looked at; a range with more of them needs a longer beginning.
 */
const MOST_LOOKED_AT = 2_000;

const FIND_JOB_IDS = statement(
  'find-job-ids',
  `
    WITH near AS MATERIALIZED (
      SELECT id, tenant FROM punctual.jobs WHERE id >= $2::uuid AND id <= $3::uuid ORDER BY id LIMIT $6::int)
    SELECT found.id, looked.cut FROM (SELECT count(*) >= $6::int AS cut FROM near) looked LEFT JOIN (
      (SELECT id FROM near WHERE tenant = $1 ORDER BY id LIMIT $4::int)
      UNION ALL
      (SELECT id FROM punctual.later WHERE tenant = $1 AND id >= $2::uuid AND id <= $3::uuid
       ORDER BY id LIMIT $4::int)
      UNION ALL
      (SELECT id FROM ${allEnded('h')}
       WHERE tenant = $1 AND id >= $2::uuid AND id <= $3::uuid AND finished_at >= $5::bigint
       ORDER BY id LIMIT $4::int)) found ON true
    ORDER BY found.id LIMIT $4::int`,
);

const FIND_WORKER_IDS = statement(
  'find-worker-ids',
  `
    SELECT id, false AS cut FROM punctual.workers
    WHERE ($1::text IS NULL OR tenant = $1) AND id >= $2::uuid AND id <= $3::uuid AND ($5::boolean OR NOT operator)
    ORDER BY id LIMIT $4::int`,
);

/** The ids of a tenant's jobs or workers that begin with these hexadecimal digits; at most `limit` of them. */
export async function findIds(
  db: Queryable,
  kind: 'job' | 'worker',
  search: {
    /** Null for the workers of all tenants. */
    readonly tenant: string | null;
    readonly digits: string;
    readonly limit: number;
    /** Whether to find the workers of operators, too. */
    readonly operator: boolean;
  },
): Promise<MatchingIds> {
  const { tenant, digits, limit, operator } = search;
  const first = toUuid(digits.padEnd(32, '0'));
  const values: unknown[] = [tenant, first, toUuid(digits.padEnd(32, 'f')), limit + 1];
  const [find, rest]: [Statement, unknown[]] =
    kind === 'job' ? [FIND_JOB_IDS, [earliestEnd(first), MOST_LOOKED_AT]] : [FIND_WORKER_IDS, [operator]];
  const rows = await run<{ id: string | null; cut: boolean }>(db, find, [...values, ...rest]);
  const ids = rows.slice(0, limit).flatMap(({ id }) => id ?? []);
  return { ids, more: rows.length > limit || rows.some(({ cut }) => cut) };
}

function toUuid(digits: string): string {
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
