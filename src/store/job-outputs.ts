import { type CheckedKind, lockArtifacts } from './artifacts.js';
import { withBytesLocked } from './bytes-lock.js';
import { type Pool, type Queryable, run, statement } from './database.js';

/**
 * What attempts left in their folders `output`. Only an attempt that is claimed can leave something. The claim is read and not
 * locked, so that whoever writes cannot block the leader, which deletes claims.
 */

const LOCK = statement(
  'lock-job-outputs',
  `SELECT pg_advisory_xact_lock(hashtextextended('punctual outputs ' || $1, 0))`,
);

/** Whether the attempt runs, and what its job has left besides the output of this name. */
const LOOK = statement(
  'look-at-job-outputs',
  `
    SELECT EXISTS (
        SELECT 1 FROM punctual.claims c JOIN punctual.jobs j ON j.id = c.job
        WHERE c.job = $2::uuid AND c.fence = $3::int AND j.tenant = $1) AS running,
      count(a.id)::int AS count, coalesce(sum(a.size), 0)::bigint AS bytes,
      (SELECT coalesce(sum(t.size), 0)::bigint FROM punctual.artifacts t WHERE $5::boolean AND t.tenant = $1) AS "tenantBytes"
    FROM (SELECT 1) one LEFT JOIN punctual.artifacts a ON a.job = $2::uuid AND a.output <> $4`,
);

const REPLACE = statement(
  'replace-job-output',
  `
    UPDATE punctual.artifacts a SET state = 'gone', job = NULL
    WHERE a.tenant = $1 AND a.job = $2::uuid AND a.output = $3 RETURNING a.sha256`,
);

const ADD = statement(
  'add-job-output',
  `
    INSERT INTO punctual.artifacts (id, tenant, sha256, size, runnable, kind, machine, state, created_at, created_by, ready_at,
      expires_at, used_at, job, fence, output)
    VALUES ($1::uuid, $2, $3, $4::bigint, false, $5, $6, 'ready', $7::bigint, $8, $7::bigint, $7::bigint, $7::bigint, $9::uuid,
      $10::int, $11)`,
);

/** An attempt, and what it calls something that it leaves. */
export interface Leaver {
  readonly tenant: string;
  readonly job: string;
  readonly fence: number;
  readonly output: string;
}

/** What there is besides, when something is left. */
export interface OutputsLook {
  /** Whether the attempt is claimed. */
  readonly running: boolean;
  /** The other outputs of the job. */
  readonly count: number;
  readonly bytes: number;
  /** All artifacts of the tenant, if that was asked for. */
  readonly tenantBytes: number;
}

/** Looks at what a job has left so far. */
export async function lookAtOutputs(
  db: Queryable,
  { tenant, job, fence, output }: Leaver,
  sumsTenant: boolean,
): Promise<OutputsLook> {
  type Row = OutputsLook & Record<string, unknown>;
  return (await run<Row>(db, LOOK, [tenant, job, fence, output, sumsTenant]))[0]!;
}

/** What is stored of an output. */
export interface NewOutput extends Leaver, CheckedKind {
  readonly id: string;
  readonly sha256: string;
  readonly size: number;
  readonly createdBy: string;
  readonly now: number;
}

/**
 * Stores an output whose bytes are there, in place of an earlier one of its name. `mayStay` looks at what there is besides and throws
 * if there is no room; `areThere` looks at the bytes, which nobody can remove then. Answers with the hash that was replaced.
 */
export function storeOutput(
  pool: Pool,
  made: NewOutput,
  sumsTenant: boolean,
  mayStay: (look: OutputsLook) => void,
  areThere: (signal: AbortSignal) => Promise<void>,
): Promise<string | null> {
  const { id, tenant, job, fence, output, sha256, size, kind, machine, createdBy, now } = made;
  return withBytesLocked(pool, sha256, async (db, askStore) => {
    await askStore(areThere);
    await run(db, LOCK, [job]);
    if (sumsTenant) await lockArtifacts(db, tenant);
    mayStay(await lookAtOutputs(db, made, sumsTenant));
    const [replaced] = await run<{ sha256: string }>(db, REPLACE, [tenant, job, output]);
    const values = [id, tenant, sha256, size, kind, machine, now, createdBy, job, fence, output];
    await run(db, ADD, values);
    return replaced?.sha256 ?? null;
  });
}
