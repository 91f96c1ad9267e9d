import type { ArtifactRow } from './artifacts.js';
import { type Queryable, run, statement } from './database.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';

/** Artifacts that nobody needs any more; those with a name and their bytes are never among them. */

/** A position in the order in which artifacts are looked at. */
export interface ForgettablePosition {
  readonly state: string;
  readonly usedAt: number;
  readonly id: string;
}

/** A position before every artifact. */
export const BEFORE_ALL_ARTIFACTS: ForgettablePosition = {
  ...{ state: '', usedAt: -1, id: '00000000-0000-0000-0000-000000000000' },
};

/** The states in the order of their names, each with the bound that counts for it. */
const FIND_FORGETTABLE = statement(
  'find-forgettable-artifacts',
  `
    SELECT a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state, a.created_at,
      a.created_by, a.ready_at, a.expires_at, a.job, a.output, a.used_at
    FROM punctual.artifacts a
    WHERE (a.name IS NULL OR a.state <> 'ready') AND (a.state, a.used_at, a.id) > ($1::text, $2::bigint, $3::uuid)
      AND (a.state = 'gone' OR (a.state = 'pending' AND a.expires_at < $4::bigint) OR (a.state = 'ready' AND a.used_at < $5::bigint))
    ORDER BY a.state, a.used_at, a.id LIMIT $6::int`,
);

/** The job of an output that is still somewhere. */
const FIND_JOB = statement(
  'find-job-of-output',
  `
    SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM punctual.jobs j WHERE j.id = $2::uuid)
      OR EXISTS (SELECT 1 FROM punctual.later l WHERE l.id = $2::uuid)
      OR EXISTS (SELECT 1 FROM punctual.job_history h WHERE h.tenant = $1 AND h.id = $2::uuid)
      OR EXISTS (SELECT 1 FROM punctual.job_history_kept k WHERE k.tenant = $1 AND k.id = $2::uuid)`,
);

/** Nothing must have happened to it since it was read, and nobody must wait for it. */
const FORGET = leaderStatement(
  'forget-artifact',
  `answer AS (
    UPDATE punctual.artifacts a SET state = 'gone', name = NULL, version = NULL, job = NULL
    WHERE a.id = $4::uuid AND a.state = $5::text AND a.used_at = $6::bigint AND a.expires_at = $7::bigint
      AND (SELECT true FROM punctual.later l WHERE l.artifact = a.id LIMIT 1) IS NULL AND ${WHILE_TERM_LASTS}
    RETURNING a.id
  )`,
);

/** An artifact that may be forgotten if nothing names it. */
export type Forgettable = ArtifactRow & { readonly used_at: number };

/**
 * Artifacts after the position that have no name, or no bytes: those that are gone; pending ones that expired before one moment; and
 * others that nobody has used since another.
 */
export function findForgettable(
  db: Queryable,
  { state, usedAt, id }: ForgettablePosition,
  { expiredBefore, usedBefore }: { readonly expiredBefore: number; readonly usedBefore: number },
  limit: number,
): Promise<Forgettable[]> {
  return run(db, FIND_FORGETTABLE, [state, usedAt, id, expiredBefore, usedBefore, limit]);
}

/** Whether a job is still there, waiting, running or in history. */
export async function isJobThere(db: Queryable, tenant: string, job: string): Promise<boolean> {
  return (await run(db, FIND_JOB, [tenant, job])).length > 0;
}

/** Marks an artifact as gone; answers false if something has happened to it since it was read. */
export async function forgetArtifact(
  db: Queryable,
  term: TermKey,
  { id, state, used_at, expires_at }: Forgettable,
): Promise<boolean> {
  return (await runAsLeader(db, term, FORGET, [id, state, used_at, expires_at])).length > 0;
}
