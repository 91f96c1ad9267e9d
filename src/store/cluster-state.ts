import { type Queryable, run, statement } from './database.js';
import {
  auditedStatement,
  leaderStatement,
  runAsLeader,
  type TermKey,
  WHILE_TERM_LASTS,
} from './leader-statement.js';

/** What all nodes share: the pause switch, the secret, the list of nodes, the number of terms. */

const READ_STATE = statement('read-cluster', 'SELECT paused, secret FROM punctual.cluster');

const PAUSE_CLUSTER = auditedStatement(
  'pause-cluster',
  `answer AS (
    UPDATE punctual.cluster SET paused = $4::boolean WHERE paused <> $4::boolean AND ${WHILE_TERM_LASTS}
    RETURNING paused
  )`,
);

/** Silence after which a node is told nothing any more: it would only be waited for. */
const SILENT_MS = 60_000;
/**
 * For `punctual.submit_job`, which refuses what the leader would refuse when it admits the job. It is the one statement of an idle
 * leader that comes every minute anyway, so it also tells what there is to do about the audit.
 */
const PUBLISH_LIMITS = leaderStatement(
  'publish-limits',
  `published AS (
    UPDATE punctual.cluster SET max_payload = $4::bigint, max_job_timeout = $5::bigint
    WHERE (max_payload, max_job_timeout) IS DISTINCT FROM ($4::bigint, $5::bigint) AND ${WHILE_TERM_LASTS}
  ), answer AS (
    SELECT EXISTS (SELECT 1 FROM punctual.audit a WHERE a.sequence IS NULL) AS unchained,
      (SELECT a.at FROM punctual.audit a WHERE a.sequence IS NOT NULL ORDER BY a.sequence LIMIT 1) AS oldest
  )`,
);

const SEE_NODE = statement(
  'see-node',
  `
    WITH seen AS (
      INSERT INTO punctual.nodes (id, url, version, started_at, last_seen) VALUES ($1, $2, $3, $4, $4)
      ON CONFLICT (id) DO UPDATE SET url = $2, version = $3, last_seen = $4
    )
    SELECT id, url FROM punctual.nodes WHERE id <> $1 AND last_seen > $4 - ${SILENT_MS}`,
);

/** The address tells the node from another process with its id, the one that replaces it. */
const FORGET_NODE = statement('forget-node', 'DELETE FROM punctual.nodes WHERE id = $1 AND url = $2');

const FORGET_SILENT_NODES = statement(
  'forget-silent-nodes',
  'DELETE FROM punctual.nodes WHERE last_seen < $1',
);

const LIST_NODES = statement(
  'list-nodes',
  `
    SELECT id, url, version, last_seen AS "lastSeen" FROM (
      SELECT * FROM punctual.nodes ORDER BY last_seen DESC LIMIT 1000) n
    ORDER BY started_at, id`,
);

const COUNT_TERMS = statement(
  'count-terms',
  'SELECT count(*)::int AS terms FROM punctual.terms WHERE shard = $1',
);

const DATABASE_TIME = statement(
  'database-time',
  'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS now',
);

interface ClusterState extends Record<string, unknown> {
  readonly paused: boolean;
  readonly secret: Buffer;
}

/** The pause switch and the secret. */
export async function readClusterState(db: Queryable): Promise<ClusterState> {
  const rows = await run<ClusterState>(db, READ_STATE, []);
  return rows[0]!;
}

/** Sets the pause switch; answers whether that changed it. */
export async function pauseCluster(db: Queryable, term: TermKey, paused: boolean): Promise<boolean> {
  return (await runAsLeader(db, term, PAUSE_CLUSTER, [paused])).length > 0;
}

/** What there is to do about the audit. */
export interface AuditDue extends Record<string, unknown> {
  /** Whether there are entries without a place in the chain. */
  readonly unchained: boolean;
  /** The time of the oldest entry of the chain. */
  readonly oldest: number | null;
}

/** Writes the limits of the leader down where SQL can see them; answers with what there is to do about the audit. */
export async function publishLimits(
  db: Queryable,
  term: TermKey,
  limits: { readonly maxPayload: number; readonly maxJobTimeout: number },
): Promise<AuditDue> {
  const values = [limits.maxPayload, limits.maxJobTimeout];
  return (await runAsLeader<AuditDue>(db, term, PUBLISH_LIMITS, values))[0]!;
}

/** Another node of the cluster, and where to reach it. */
export type OtherNode = Pick<NodeRow, 'id' | 'url'>;

/** Records a sign of life of the node; answers with the other nodes that were heard of lately. */
export async function seeNode(
  db: Queryable,
  node: { id: string; url: string; version: string },
  now: number,
): Promise<OtherNode[]> {
  return run(db, SEE_NODE, [node.id, node.url, node.version, now]);
}

/** Deletes a node that stops. */
export async function forgetNode(db: Queryable, node: OtherNode): Promise<void> {
  await run(db, FORGET_NODE, [node.id, node.url]);
}

/** Deletes nodes that were last seen before the moment. */
export async function forgetSilentNodes(db: Queryable, seenBefore: number): Promise<void> {
  await run(db, FORGET_SILENT_NODES, [seenBefore]);
}

interface NodeRow extends Record<string, unknown> {
  readonly id: string;
  readonly url: string;
  readonly version: string;
  readonly lastSeen: number;
}

/** The nodes that were seen last, oldest first. */
export function listNodes(db: Queryable): Promise<NodeRow[]> {
  return run(db, LIST_NODES, []);
}

/** How many terms the shard has had. */
export async function countTerms(db: Queryable, shard: number): Promise<number> {
  const rows = await run<{ terms: number }>(db, COUNT_TERMS, [shard]);
  return rows[0]!.terms;
}

/** The database's time in milliseconds, with its fraction. */
export async function databaseTime(db: Queryable): Promise<number> {
  const rows = await run<{ now: number }>(db, DATABASE_TIME, []);
  return rows[0]!.now;
}
