import { PunctualError } from '../core/errors.js';
import type { NamedContext } from '../core/workflow/named-workflows.js';
import type { FailurePolicy, RunningPolicy } from '../core/workflow.js';
import { assertTenant } from './assert-tenant.js';
import { inTransaction, type Pool, type Queryable, run, statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { type Portion, type PortionSize, portionOf, readPortion } from './portion.js';

/**
 * Graphs that are kept under names. Any node writes them, those of a tenant one after the other. A version never changes; a
 * change of a definition adds one, and a deletion leaves the versions that workflows were started from. The number of a version
 * is never given to another graph of its name, so that who noted it finds that graph or none.
 */

/** A version without its steps. */
export interface DefinitionRow extends Record<string, unknown> {
  readonly tenant: string;
  readonly name: string;
  readonly version: number;
  readonly on_failure: FailurePolicy;
  readonly running: RunningPolicy;
  readonly bytes: number;
  readonly steps: number;
  /** The SHA-256 of what it says, in hexadecimal digits. */
  readonly digest: string;
  readonly queues: readonly string[] | null;
  readonly tasks: readonly string[] | null;
  readonly created_at: number;
  readonly created_by: string;
  /** Null for the version that starts take. */
  readonly replaced_at: number | null;
}

/** A version with its steps. */
export interface WholeDefinition extends DefinitionRow {
  /** JSON text in the form of the public API. */
  readonly jobs: string;
}

/** What is written about a definition. */
export interface NewGraph
  extends Pick<DefinitionRow, 'tenant' | 'name' | 'steps' | 'queues' | 'tasks' | 'running'> {
  readonly onFailure: FailurePolicy;
  readonly jobs: string;
  readonly digest: Buffer;
  readonly actor: string;
  readonly now: number;
}

/** The most versions that a tenant has, of all definitions together, and the most bytes of them. */
const MAX_VERSIONS = 10_000;
const MAX_BYTES = 256 * 1024 * 1024;
/** The most names of a tenant whose last numbers are remembered; more than those that can have versions. */
const MAX_NAMES = 20_000;
/** The most versions that are told of one definition. */
const MOST_TOLD = 1_000;
/** Versions that one pass of the upkeep looks at. */
const PAGE = 500;

const COLUMNS = `d.tenant, d.name, d.version, d.on_failure, d.running, d.bytes, d.steps,
      encode(d.digest, 'hex') AS digest, d.queues, d.tasks, d.created_at,
      d.created_by, d.replaced_at`;

/** The newest version, or a given one. */
const WHICH = `d.tenant = $1 AND d.name = $2
      AND CASE WHEN $3::int IS NULL THEN d.replaced_at IS NULL ELSE d.version = $3::int END`;

const FIND = statement(
  'find-workflow-definition',
  `SELECT ${COLUMNS} FROM punctual.workflow_definitions d WHERE ${WHICH}`,
);

const READ = statement(
  'read-workflow-definition',
  `SELECT ${COLUMNS}, d.jobs FROM punctual.workflow_definitions d WHERE ${WHICH}`,
);

const LIST = statement(
  'list-workflow-definitions',
  portionOf(
    `SELECT ${COLUMNS.replace('d.bytes', '1024 AS bytes')} FROM punctual.workflow_definitions d
     WHERE d.tenant = $1 AND d.name > $2 AND d.replaced_at IS NULL ORDER BY d.name LIMIT $3::int + 1`,
    'name',
    { rows: '$3', bytes: '$4' },
  ),
);

const LIST_VERSIONS = statement(
  'list-definition-versions',
  `
    SELECT d.version FROM punctual.workflow_definitions d
    WHERE d.tenant = $1 AND d.name = $2 ORDER BY d.version DESC LIMIT ${MOST_TOLD}`,
);

/** By the tenant's name: those of others are hardly ever in the way. */
const LOCK = statement(
  'lock-workflow-definitions',
  `SELECT pg_advisory_xact_lock(hashtextextended('punctual workflow definitions ' || $1, 0))`,
);

const STOCK = statement(
  'count-workflow-definitions',
  `
    SELECT count(*) AS versions, coalesce(sum(d.bytes), 0)::bigint AS bytes,
      bool_or(d.name = $2 AND d.replaced_at IS NULL AND d.digest = $3::bytea) AS same,
      (SELECT count(*) FROM punctual.definition_numbers n WHERE n.tenant = $1) AS names
    FROM punctual.workflow_definitions d WHERE d.tenant = $1`,
);

/** Forgets the names without versions; new names begin after their highest number, because it may be one of those. */
const FORGET_NUMBERS = statement(
  'forget-definition-numbers',
  `
    WITH gone AS (
      DELETE FROM punctual.definition_numbers n WHERE n.tenant = $1 AND n.name <> '' AND NOT EXISTS (
        SELECT FROM punctual.workflow_definitions d WHERE d.tenant = n.tenant AND d.name = n.name)
      RETURNING n.version
    )
    INSERT INTO punctual.definition_numbers AS n (tenant, name, version)
    SELECT $1, '', max(g.version) FROM gone g HAVING max(g.version) IS NOT NULL
    ON CONFLICT (tenant, name) DO UPDATE SET version = greatest(n.version, excluded.version)`,
);

/** The number of the next version of a name. */
const NEXT_NUMBER = statement(
  'next-definition-number',
  `
    INSERT INTO punctual.definition_numbers AS n (tenant, name, version)
    SELECT $1, $2, 1 + coalesce(
      (SELECT f.version FROM punctual.definition_numbers f WHERE f.tenant = $1 AND f.name = ''), 0)
    ON CONFLICT (tenant, name) DO UPDATE SET version = n.version + 1 RETURNING n.version`,
);

const REPLACE = statement(
  'replace-workflow-definition',
  `
    UPDATE punctual.workflow_definitions d SET replaced_at = $3::bigint
    WHERE d.tenant = $1 AND d.name = $2 AND d.replaced_at IS NULL RETURNING ${COLUMNS}`,
);

const ADD = statement(
  'add-workflow-definition',
  `
    INSERT INTO punctual.workflow_definitions AS d (tenant, name, version, jobs, on_failure, running, digest, bytes, steps,
      queues, tasks, created_at, created_by)
    VALUES ($1, $2, $3, $4::json, $5, $6, $7, $8, $9, $10, $11, $12, $13) RETURNING ${COLUMNS}`,
);

/** The error for a definition that the tenant does not have. */
export function noDefinition(name: string, version?: number): PunctualError {
  const what = version === undefined ? '' : ` with version ${version}`;
  return new PunctualError('DEFINITION_NOT_FOUND', `There is no workflow definition ${name}${what}.`);
}

/** A version without its steps; the newest unless another is asked for. */
export async function findDefinition(
  db: Queryable,
  tenant: string,
  name: string,
  version?: number,
): Promise<DefinitionRow | null> {
  const [row] = await run<DefinitionRow>(db, FIND, [tenant, name, version ?? null]);
  return row ?? null;
}

/** A version with its steps. */
export async function readDefinition(
  db: Queryable,
  tenant: string,
  name: string,
  version?: number,
): Promise<WholeDefinition | null> {
  const [row] = await run<WholeDefinition>(db, READ, [tenant, name, version ?? null]);
  if (row) assertTenant(tenant, row);
  return row ?? null;
}

/** Finds definitions that steps name. Versions of a deleted definition stay on record, but cannot be started. */
export function definitionsOf(db: Queryable, tenant: string): NamedContext['find'] {
  return async (name, version) => {
    const row = await readDefinition(db, tenant, name, version);
    if (!row) return null;
    if (row.replaced_at !== null && !(await findDefinition(db, tenant, name))) return null;
    const { on_failure: onFailure, running, jobs } = row;
    return { onFailure, running, jobs };
  };
}

/** The newest versions of a tenant's definitions by name. */
export function listDefinitions(
  db: Queryable,
  tenant: string,
  after: string,
  { rows, bytes }: PortionSize,
): Promise<Portion<DefinitionRow>> {
  return readPortion<DefinitionRow>(db, LIST, [tenant, after, rows, bytes]);
}

/** The versions of a definition that are kept, the newest first. */
export async function listVersions(db: Queryable, tenant: string, name: string): Promise<number[]> {
  const rows = await run<{ version: number }>(db, LIST_VERSIONS, [tenant, name]);
  return rows.map(({ version }) => version);
}

/** The outcome of a change: the newest version before and after it. */
export interface DefinitionChanged {
  readonly before: DefinitionRow | null;
  /** Null when it was deleted, or was not there. */
  readonly after: DefinitionRow | null;
}

/** What else is written in the transaction of a change. */
type Also = (db: Queryable, changed: DefinitionChanged) => Promise<void>;

/** Makes a graph the newest version, unless it is that already; answers whether it was not. */
export function putDefinition(
  pool: Pool,
  graph: NewGraph,
  /** Refuses to replace what it may not. */
  mayReplace: (found: DefinitionRow) => void,
  also: Also,
  limits: { readonly names: number } = { names: MAX_NAMES },
): Promise<DefinitionChanged & { readonly isNew: boolean }> {
  const { tenant, name, now } = graph;
  return inTransaction(pool, async (db) => {
    await run(db, LOCK, [tenant]);
    const before = await findDefinition(db, tenant, name);
    if (before) mayReplace(before);
    type Stock = { versions: number; bytes: number; same: boolean | null; names: number };
    const [stock] = await run<Stock>(db, STOCK, [tenant, name, graph.digest]);
    if (stock!.same) {
      const same = { before, after: before, isNew: false };
      await also(db, same);
      return same;
    }
    const bytes = Buffer.byteLength(graph.jobs);
    if (stock!.versions >= MAX_VERSIONS || stock!.bytes + bytes > MAX_BYTES) throw tooMany(tenant);
    await run(db, REPLACE, [tenant, name, now]);
    if (stock!.names >= limits.names) await run(db, FORGET_NUMBERS, [tenant]);
    const [number] = await run<{ version: number }>(db, NEXT_NUMBER, [tenant, name]);
    const { jobs, onFailure, running, digest, steps, queues, tasks, actor } = graph;
    const [after] = await run<DefinitionRow>(db, ADD, [
      ...[tenant, name, number!.version, jobs, onFailure, running, digest, bytes, steps],
      ...[queues, tasks, now, actor],
    ]);
    const changed = { before, after: after!, isNew: true };
    await also(db, changed);
    return changed;
  });
}

function tooMany(tenant: string): PunctualError {
  const detail =
    `The workflow definitions of tenant ${tenant} may have ${MAX_VERSIONS} versions and ${MAX_BYTES} bytes together, ` +
    'with those that workflows on record were started from.';
  return new PunctualError('QUOTA_EXCEEDED', detail);
}

/** Deletes a definition; answers what it was. Versions that workflows use stay for them. */
export function deleteDefinition(
  pool: Pool,
  { tenant, name, now }: Pick<NewGraph, 'tenant' | 'name' | 'now'>,
  also: Also,
): Promise<DefinitionRow | null> {
  return inTransaction(pool, async (db) => {
    await run(db, LOCK, [tenant]);
    const [before] = await run<DefinitionRow>(db, REPLACE, [tenant, name, now]);
    if (before) await also(db, { before, after: null });
    return before ?? null;
  });
}

/** A position among the versions of all tenants. */
export interface VersionPosition {
  readonly tenant: string;
  readonly name: string;
  readonly version: number;
}

/** A position before every version. */
export const BEFORE_ALL_VERSIONS: VersionPosition = { tenant: '', name: '', version: 0 };

/**
 * Removes those of a page of replaced versions that no workflow on record was started from. One that was replaced a moment ago
 * stays: somebody may be about to start it.
 */
const FORGET_VERSIONS = leaderStatement(
  'forget-definition-versions',
  `page AS MATERIALIZED (
    SELECT d.tenant, d.name, d.version, d.ctid AS place FROM punctual.workflow_definitions d
    WHERE d.replaced_at < $7::bigint AND (d.tenant, d.name, d.version) > ($4::text, $5::text, $6::int) AND ${WHILE_TERM_LASTS}
    ORDER BY d.tenant, d.name, d.version LIMIT ${PAGE}
  ), gone AS (
    DELETE FROM punctual.workflow_definitions d WHERE d.ctid = ANY (ARRAY(
      SELECT p.place FROM page p WHERE (
        SELECT true FROM punctual.workflows w
        WHERE w.tenant = p.tenant AND w.definition = p.name AND w.definition_version = p.version LIMIT 1) IS NULL))
    RETURNING 1
  ), answer AS (
    SELECT p.tenant, p.name, p.version, (SELECT count(*) FROM page) AS seen, (SELECT count(*) FROM gone) AS gone
    FROM page p ORDER BY p.tenant DESC, p.name DESC, p.version DESC LIMIT 1
  )`,
);

/** Looks at a page of replaced versions; answers where the next one begins, or null when this was the last. */
export async function forgetVersions(
  db: Queryable,
  term: TermKey,
  { tenant, name, version }: VersionPosition,
  replacedBefore: number,
): Promise<VersionPosition | null> {
  type Seen = VersionPosition & { readonly seen: number } & Record<string, unknown>;
  const values = [tenant, name, version, replacedBefore];
  const [last] = await runAsLeader<Seen>(db, term, FORGET_VERSIONS, values);
  return last && last.seen === PAGE ? { tenant: last.tenant, name: last.name, version: last.version } : null;
}
