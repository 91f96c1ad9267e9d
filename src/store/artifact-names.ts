import { readReference } from '../core/artifact.js';
import { parseDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import type { JobDefinition } from '../core/submission.js';
import { type ArtifactRow, findArtifact, findNewest, findVersion } from './artifacts.js';
import { type Queryable, run, statement } from './database.js';

/**
 * What targets mean by the names of artifacts. A name is replaced by an id when a job is stored, so that a later version changes no
 * job that exists.
 */

/** The artifact that a reference means at this moment: by its id, a version, or a name for its newest version that is ready. */
export function findReferred(db: Queryable, tenant: string, text: string): Promise<ArtifactRow | null> {
  const reference = readReference(text);
  if (reference === null) return Promise.resolve(null);
  if ('id' in reference) return findArtifact(db, tenant, reference.id);
  const { name, version } = reference;
  return version === null ? findNewest(db, tenant, name) : findVersion(db, tenant, name, version);
}

/** Within so much of its last use, the use of an artifact is not noted again. */
const USED_EVERY_MS = 3_600_000;

/**
 * Many references in one statement. It also notes that those artifacts are in use, which keeps one without a name from being
 * cleaned up before the job is stored that names it.
 */
const RESOLVE = statement(
  'resolve-artifacts',
  `
    WITH asked AS MATERIALIZED (
      SELECT u.n, a.id, a.tenant, a.state, a.runnable, a.used_at
      FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[]) WITH ORDINALITY u(tenant, id, name, version, n)
      LEFT JOIN LATERAL (
        (SELECT i.* FROM punctual.artifacts i WHERE i.id = u.id AND i.tenant = u.tenant AND i.state <> 'gone')
        UNION ALL
        (SELECT v.* FROM punctual.artifacts v WHERE v.tenant = u.tenant AND v.name = u.name AND v.version = u.version)
        UNION ALL
        (SELECT r.* FROM punctual.artifacts r
         WHERE u.version IS NULL AND r.tenant = u.tenant AND r.name = u.name AND r.state = 'ready'
         ORDER BY r.ready_at DESC, r.id DESC LIMIT 1)) a ON true
    ), used AS (
      UPDATE punctual.artifacts a SET used_at = $5::bigint
      WHERE a.id IN (SELECT k.id FROM asked k WHERE k.used_at < $5::bigint - ${USED_EVERY_MS})
    )
    SELECT k.n::int AS n, k.id, k.tenant, k.state, k.runnable FROM asked k ORDER BY k.n`,
);

interface ResolvedRow extends Record<string, unknown> {
  readonly id: string | null;
  readonly state: 'pending' | 'ready' | null;
  readonly runnable: boolean | null;
}

/** A job that may run an artifact, and whose it is. */
export interface RunsArtifact {
  readonly tenant: string;
  readonly definition: JobDefinition;
}

/** What becomes of definitions whose targets name artifacts: the same by id, or why that cannot be. Others are missing. */
export type ResolvedArtifacts = ReadonlyMap<JobDefinition, JobDefinition | PunctualError>;

const NOTHING: ResolvedArtifacts = new Map();

/** Replaces the names of artifacts by ids; a job whose artifact is not uploaded yet waits for it so long. */
export async function resolveArtifacts(
  db: Queryable,
  jobs: readonly RunsArtifact[],
  now: number,
  defaultWaitMs: number,
): Promise<ResolvedArtifacts> {
  const named = namedIn(jobs);
  if (named.length === 0) return NOTHING;
  const resolved = new Map<JobDefinition, JobDefinition | PunctualError>();
  const asked = named.filter(({ definition, text, reference }) => {
    if (reference === null) resolved.set(definition, notFound(text));
    return reference !== null;
  });
  const rows = await run<ResolvedRow>(db, RESOLVE, [
    asked.map(({ tenant }) => tenant),
    asked.map(({ reference }) => (reference && 'id' in reference ? reference.id : null)),
    asked.map(({ reference }) => (reference && 'name' in reference ? reference.name : null)),
    asked.map(({ reference }) => (reference && 'name' in reference ? reference.version : null)),
    now,
  ]);
  for (const [i, { definition, text }] of asked.entries())
    resolved.set(definition, withArtifact(definition, text, rows[i]!, now, defaultWaitMs));
  return resolved;
}

/** Each definition that names an artifact, once. */
function namedIn(jobs: readonly RunsArtifact[]) {
  const named = new Map<JobDefinition, { tenant: string; text: string }>();
  for (const { tenant, definition } of jobs) {
    const { target } = definition;
    if (target?.type === 'exec' && target.artifact !== undefined && !named.has(definition))
      named.set(definition, { tenant, text: target.artifact });
  }
  return Array.from(named, ([definition, { tenant, text }]) => ({
    ...{ definition, tenant, text, reference: readReference(text) },
  }));
}

function withArtifact(
  definition: JobDefinition,
  text: string,
  { id, state, runnable }: ResolvedRow,
  now: number,
  defaultWaitMs: number,
): JobDefinition | PunctualError {
  const { target, runAt } = definition;
  if (id === null || target?.type !== 'exec') return notFound(text);
  if (!runnable)
    return new PunctualError(
      'ARTIFACT_NOT_RUNNABLE',
      `Artifact ${text} was uploaded as a file that is not to be run.`,
    );
  // The artifact stands before all that a user has named, because the indexes take the first of that name.
  const { type, artifact: _, ...rest } = target;
  const same = { ...definition, target: { type, artifact: id, ...rest } };
  if (state === 'ready') return same;
  const waitMs =
    target.artifactTimeout === undefined ? defaultWaitMs : parseDuration(target.artifactTimeout)!;
  return { ...same, awaits: { id, by: Math.max(now, runAt) + waitMs } };
}

function notFound(text: string): PunctualError {
  const isName = !text.includes('@');
  const detail = isName
    ? `There is no artifact ${text} that is uploaded.`
    : `There is no artifact ${text}, and none was announced.`;
  return new PunctualError('ARTIFACT_NOT_FOUND', detail);
}

/** The definition by which a job is stored; throws why it cannot be. */
export function resolvedOr(resolved: ResolvedArtifacts, definition: JobDefinition): JobDefinition {
  const found = resolved.get(definition) ?? definition;
  if (found instanceof PunctualError) throw found;
  return found;
}
