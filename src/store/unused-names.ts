import { type Queryable, run, statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/**
 * Removing names of queues and needs that no job uses any more.
 *
 * When a name was last used stands in its row: submissions put it down (see names.ts), and so does the leader, several
 * times a day, for all jobs that have not ended. A name whose last use lies before the oldest day of history that is
 * there, with days to spare, is in no place.
 */

/** A queue and needs that live jobs use together. */
export interface NamePair extends Record<string, unknown> {
  readonly queue: number;
  readonly needs: number;
}

/** Sorts before every pair. */
export const BEFORE_ALL_NAMES: NamePair = { queue: -1, needs: -1 };

/** Skips through the index from pair to pair: the cost grows with the pairs, not with the jobs. */
const FIND_LIVE_NAMES = statement(
  'find-live-names',
  `
    WITH RECURSIVE pair AS (
      SELECT $1::int AS queue, $2::int AS needs
      UNION ALL
      SELECT n.queue, n.needs FROM pair p CROSS JOIN LATERAL (
        SELECT j.queue, j.needs FROM punctual.jobs j
        WHERE (j.queue, j.needs) > (p.queue, p.needs) ORDER BY j.queue, j.needs LIMIT 1) n
    )
    SELECT queue, needs FROM pair OFFSET 1 LIMIT $3`,
);

/** Those of the next jobs that wait outside the live table, by id: it has no index on names and is read in pages. */
const FIND_LATER_NAMES = statement(
  'find-later-names',
  `
    WITH page AS (
      SELECT id, queue, needs FROM punctual.later WHERE id > $1::uuid ORDER BY id LIMIT $2::int
    )
    SELECT DISTINCT queue, needs, (SELECT count(*) FROM page) AS read, '' AS tenant,
      (SELECT id FROM page ORDER BY id DESC LIMIT 1) AS last
    FROM page`,
);

/** The same of jobs that are kept beyond their day of history. */
const FIND_KEPT_NAMES = statement(
  'find-kept-names',
  `
    WITH page AS (
      SELECT tenant, id, queue, needs FROM punctual.job_history_kept
      WHERE (tenant, id) > ($3::text, $1::uuid) ORDER BY tenant, id LIMIT $2::int
    ), last AS (
      SELECT tenant, id FROM page ORDER BY tenant DESC, id DESC LIMIT 1
    )
    SELECT DISTINCT p.queue, p.needs, (SELECT count(*) FROM page) AS read, l.tenant, l.id AS last FROM page p, last l`,
);

const KEEP_NAMES = leaderStatement(
  'keep-names',
  `kept_queues AS (
    UPDATE punctual.queues SET used_at = $6::bigint
    WHERE id = ANY($4::int[]) AND used_at < $7::bigint AND ${WHILE_TERM_LASTS}
  ), answer AS (
    UPDATE punctual.needs SET used_at = $6::bigint
    WHERE id = ANY($5::int[]) AND used_at < $7::bigint AND ${WHILE_TERM_LASTS}
    RETURNING id
  )`,
);

/** A queue that is paused or has limits is kept: it would be made again without them. */
const REMOVE_QUEUES = removal(
  'queues',
  'NOT n.paused AND n.weight = 1 AND n.concurrency IS NULL AND n.key_concurrency = 1 AND n.rate_limit IS NULL',
);
const REMOVE_NEEDS = removal('needs', 'true');

function removal(table: 'queues' | 'needs', removable: string) {
  return leaderStatement(
    `remove-${table}`,
    `page AS (
      SELECT id FROM punctual.${table} WHERE id > $4::int ORDER BY id LIMIT $6::int
    ), gone AS (
      DELETE FROM punctual.${table} n
      WHERE n.id = ANY(ARRAY(SELECT id FROM page)) AND n.used_at < $5::bigint AND ${removable} AND ${WHILE_TERM_LASTS}
      RETURNING n.id
    ), answer AS (
      SELECT count(*) AS read, max(page.id) AS last, (SELECT count(*) FROM gone) AS removed FROM page
    )`,
  );
}

/** Up to `limit` pairs of names that live jobs use, after the given pair. */
export function findLiveNames(db: Queryable, after: NamePair, limit: number): Promise<NamePair[]> {
  return run(db, FIND_LIVE_NAMES, [after.queue, after.needs, limit]);
}

/** Where reading goes on: behind a job, of a tenant if the jobs are read by tenants. */
export interface JobPosition {
  readonly tenant: string;
  readonly id: string;
}

/** Sorts before every job. */
export const BEFORE_ALL_JOBS: JobPosition = { tenant: '', id: '00000000-0000-0000-0000-000000000000' };

/** Names of a page of jobs outside the live table. */
export interface LaterNames {
  readonly names: readonly NamePair[];
  /** The last job of the page; null when there are no more. */
  readonly last: JobPosition | null;
}

/** Names that jobs outside the live table use, waiting or kept; of up to `limit` jobs after the given one. */
export async function findNamesOf(
  db: Queryable,
  place: 'later' | 'kept',
  { tenant, id }: JobPosition,
  limit: number,
): Promise<LaterNames> {
  type Found = Nullable<NamePair> & { read: number; tenant: string; last: string };
  const rows =
    place === 'later'
      ? await run<Found>(db, FIND_LATER_NAMES, [id, limit])
      : await run<Found>(db, FIND_KEPT_NAMES, [id, limit, tenant]);
  // What was submitted inside a transaction has no names before it is parsed.
  const names = rows.flatMap(({ queue, needs }) =>
    queue === null || needs === null ? [] : [{ queue, needs }],
  );
  const [first] = rows;
  return { names, last: first?.read === limit ? { tenant: first.tenant, id: first.last } : null };
}

type Nullable<T> = { [K in keyof T]: T[K] | null };

/** Marks these names as used now, unless they were marked after `since`. */
export async function keepNames(
  db: Queryable,
  term: TermKey,
  names: readonly NamePair[],
  now: number,
  since: number,
): Promise<void> {
  const queues = [...new Set(names.map(({ queue }) => queue))];
  const needs = [...new Set(names.map(({ needs }) => needs))];
  await runAsLeader(db, term, KEEP_NAMES, [queues, needs, now, since]);
}

/** How many names of a page were read and removed. */
interface RemovedNames extends Record<string, unknown> {
  readonly read: number;
  /** The last id of the page; null when the page is empty. */
  readonly last: number | null;
  readonly removed: number;
}

/** Removes, among the next `limit` names after the given one, those that were last used before the moment. */
export async function removeNames(
  db: Queryable,
  term: TermKey,
  kind: 'queues' | 'needs',
  after: number,
  before: number,
  limit: number,
): Promise<RemovedNames> {
  const statement = kind === 'queues' ? REMOVE_QUEUES : REMOVE_NEEDS;
  const [answer] = await runAsLeader<RemovedNames>(db, term, statement, [after, before, limit]);
  return answer!;
}
