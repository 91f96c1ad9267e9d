import { byIndex } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';
import { rowBytes } from './job-columns.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/**
 * Jobs that wait for artifacts: blocked rows of `later` that name one. The end of an upload makes the artifact ready, whoever leads;
 * the leader frees the jobs. What is to be done can always be told from the tables, so a new leader goes on where the last one was.
 */

/**
 * Artifacts that jobs wait for, in the order of their ids: one look at the index for each, however many jobs wait for it. Of a
 * million that are never uploaded, a walk sees a part; the next one goes on behind it.
 */
const WALK_AWAITED = statement(
  'walk-awaited-artifacts',
  `
    WITH RECURSIVE awaited AS (
      (SELECT l.artifact, 1 AS n FROM punctual.later l WHERE l.artifact > $1::uuid ORDER BY l.artifact LIMIT 1)
      UNION ALL
      SELECT (SELECT l.artifact FROM punctual.later l WHERE l.artifact > w.artifact ORDER BY l.artifact LIMIT 1), w.n + 1
      FROM awaited w WHERE w.artifact IS NOT NULL AND w.n < $2::int
    )
    SELECT string_agg(w.artifact::text, ',') FILTER (WHERE a.state IS DISTINCT FROM 'pending') AS arrived,
      max(w.artifact::text) FILTER (WHERE w.n = $2::int) AS "after"
    FROM awaited w
    LEFT JOIN LATERAL (SELECT a.state FROM punctual.artifacts a WHERE a.id = w.artifact LIMIT 1) a ON true
    WHERE w.artifact IS NOT NULL`,
);

/** The jobs of those that need not be awaited any more: they are ready, or gone. */
const FIND_ARRIVED = statement(
  'find-arrived-artifacts',
  `
    SELECT l.id, l.batch, a.state IS NOT DISTINCT FROM 'ready' AS "isReady", ${rowBytes('l', 'later')} AS bytes
    FROM unnest($3::uuid[]) u(id)
    LEFT JOIN LATERAL (SELECT a.state FROM punctual.artifacts a WHERE a.id = u.id LIMIT 1) a ON true
    CROSS JOIN LATERAL (
      SELECT l.* FROM punctual.later l WHERE l.artifact = u.id AND l.id <> ALL ($2::uuid[]) ORDER BY l.id LIMIT $1) l
    WHERE a.state IS DISTINCT FROM 'pending'
    LIMIT $1`,
);

const FIND_OVERDUE = statement(
  'find-overdue-artifacts',
  `
    SELECT l.id, l.batch, false AS "isReady", ${rowBytes('l', 'later')} AS bytes FROM punctual.later l
    WHERE l.artifact IS NOT NULL AND l.artifact_by <= $3::bigint AND l.id <> ALL ($2::uuid[])
    ORDER BY l.artifact_by LIMIT $1`,
);

const NEXT_OVERDUE = statement(
  'next-overdue-artifact',
  'SELECT min(l.artifact_by) AS at FROM punctual.later l WHERE l.artifact IS NOT NULL',
);

/**
 * Frees jobs whose artifact has arrived. A job that waits for nothing else is admitted, and is due no earlier than now: that its
 * artifact was late does not make it late. A step that may run in a workflow that is on hold is parked; one that waits for other
 * steps, and the member of a batch, go on waiting. Run while nothing else changes workflows.
 */
const FREE_JOBS = leaderStatement(
  'free-artifact-jobs',
  `chosen AS MATERIALIZED (
    SELECT l.id,
      l.batch IS NULL AND (s.id IS NULL OR (s.released AND NOT s.parked AND NOT coalesce(w.held, false))) AS goes,
      coalesce(s.released AND w.held, false) AS parks
    FROM unnest($4::uuid[]) u(id) JOIN punctual.later l ON ${byIndex('l.id', 'u.id')}
    LEFT JOIN LATERAL (
      SELECT s.id, s.released, s.parked FROM punctual.steps s WHERE s.id = l.id AND l.workflow IS NOT NULL LIMIT 1) s ON true
    LEFT JOIN LATERAL (
      SELECT w.held FROM punctual.workflows w WHERE w.id = l.workflow AND s.id IS NOT NULL LIMIT 1) w ON true
    WHERE (SELECT a.state FROM punctual.artifacts a WHERE a.id = l.artifact LIMIT 1) = 'ready' AND ${WHILE_TERM_LASTS}
  ), parked AS (
    UPDATE punctual.steps s SET parked = true WHERE s.id = ANY (ARRAY(SELECT c.id FROM chosen c WHERE c.parks))
  ), answer AS (
    UPDATE punctual.later l SET artifact = NULL, artifact_by = NULL, blocked = NOT c.goes,
      run_at = CASE WHEN c.goes THEN greatest(l.run_at, $5::bigint) ELSE l.run_at END,
      admit_at = CASE WHEN c.goes THEN greatest(l.run_at - $6::bigint, $5::bigint) ELSE l.admit_at END
    FROM chosen c WHERE ${byIndex('l.id', 'c.id')}
    RETURNING l.id
  )`,
);

/** A job that waits for an artifact, and need not any more. */
export interface ArtifactWaiter extends Record<string, unknown> {
  readonly id: string;
  /** The batch that it is a member of. */
  readonly batch: string | null;
  /** Whether its artifact is there; otherwise it never will be, or not in time. */
  readonly isReady: boolean;
  /** About the size of its row. */
  readonly bytes: number;
}

/** Before every artifact. */
export const BEFORE_ALL_AWAITED = '00000000-0000-0000-0000-000000000000';

/** What a walk has seen. */
export interface AwaitedWalk {
  /** Artifacts that are ready or gone, and have jobs that wait. */
  readonly arrived: readonly string[];
  /** The last one that it looked at; null if there are no more. */
  readonly after: string | null;
}

/** Looks at so many of the artifacts that jobs wait for, behind the given one. */
export async function walkAwaited(db: Queryable, after: string, most: number): Promise<AwaitedWalk> {
  type Row = { readonly arrived: string | null; readonly after: string | null };
  const [row] = await run<Row>(db, WALK_AWAITED, [after, most]);
  return { arrived: row?.arrived ? row.arrived.split(',') : [], after: row?.after ?? null };
}

/** Jobs of those of the artifacts that are ready or gone, up to `limit`, without the skipped ones. */
export function findArrived(
  db: Queryable,
  limit: number,
  skipped: readonly string[],
  artifacts: readonly string[],
): Promise<ArtifactWaiter[]> {
  return run(db, FIND_ARRIVED, [limit, skipped, artifacts]);
}

/** Jobs that have waited for their artifact for too long, up to `limit`, without the skipped ones. */
export function findOverdue(
  db: Queryable,
  limit: number,
  skipped: readonly string[],
  now: number,
): Promise<ArtifactWaiter[]> {
  return run(db, FIND_OVERDUE, [limit, skipped, now]);
}

/** When the next job has waited for too long; null when none waits. */
export async function nextOverdue(db: Queryable): Promise<number | null> {
  const [row] = await run<{ at: number | null }>(db, NEXT_OVERDUE, []);
  return row?.at ?? null;
}

/** Frees jobs whose artifact is ready; answers with the ids of those that it freed. */
export async function freeArtifactJobs(
  db: Queryable,
  term: TermKey,
  ids: readonly string[],
  now: number,
  laterThreshold: number,
): Promise<Set<string>> {
  const values = [ids, now, Math.floor((laterThreshold * 2) / 3)];
  const rows = await runAsLeader<{ id: string }>(db, term, FREE_JOBS, values);
  return new Set(rows.map(({ id }) => id));
}
