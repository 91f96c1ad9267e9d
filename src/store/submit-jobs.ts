import { PunctualError } from '../core/errors.js';
import { inTransaction, type Pool, type Queryable, run, type Statement } from './database.js';
import { type JobRow, ROW_COLUMNS, rowArrays } from './job-row.js';

/** Storing new jobs: one multi-row insert, whatever their number, with their count in the same transaction. */

const INSERT_JOBS: Statement = {
  name: 'insert-jobs',
  text: `
    WITH counted AS (
      INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
      SELECT $22::bigint, c.tenant, c.jobs FROM unnest($23::text[], $24::bigint[]) c(tenant, jobs)
    )
    INSERT INTO punctual.jobs (${ROW_COLUMNS})
    SELECT * FROM unnest(
      $1::uuid[], $2::text[], $3::int[], $4::int[], $5::smallint[], $6::bigint[], $7::smallint[], $8::smallint[],
      $9::boolean[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::text[],
      $16::text[], $17::json[], $18::json[], $19::json[], $20::json[], $21::int[])`,
};

const INSERT_LATER: Statement = {
  name: 'insert-later',
  text: `
    WITH counted AS (
      INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
      SELECT $24::bigint, c.tenant, c.jobs FROM unnest($25::text[], $26::bigint[]) c(tenant, jobs)
    )
    INSERT INTO punctual.later (${ROW_COLUMNS}, admit_at, held)
    SELECT * FROM unnest(
      $1::uuid[], $2::text[], $3::int[], $4::int[], $5::smallint[], $6::bigint[], $7::smallint[], $8::smallint[],
      $9::boolean[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::text[],
      $16::text[], $17::json[], $18::json[], $19::json[], $20::json[], $21::int[], $22::bigint[], $23::boolean[])`,
};

const INSERT_KEYS: Statement = {
  name: 'insert-keys',
  text: `
    INSERT INTO punctual.keys (tenant, key, job)
    SELECT u.tenant, u.key, u.job FROM unnest($1::text[], $2::text[], $3::uuid[]) u(tenant, key, job)
    ORDER BY u.tenant, u.key
    ON CONFLICT (tenant, key) DO NOTHING`,
};

/** A statement of its own: the winner of a conflict is invisible to the snapshot of the insert that lost. */
const FIND_KEYS: Statement = {
  name: 'find-keys',
  text: `
    SELECT u.place, k.job FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u(tenant, key, place)
    JOIN punctual.keys k ON k.tenant = u.tenant AND k.key = u.key`,
};

/** A job on its way into the store; `admitAt` sends it to `later`. */
export interface NewJob {
  readonly row: JobRow;
  readonly admitAt: number | null;
  readonly held: boolean;
}

/**
 * How long after its ids were made a submission can become visible. The look-back reaches at least this far, so
 * a submission that would take longer is given up before its commit: half of this for everything up to the
 * COMMIT, half for the COMMIT itself (or for a single statement), which the pools' deadlines keep.
 */
export const VISIBLE_WITHIN_MS = 10_000;

function mustStillBeFound(madeAt: number): void {
  if (performance.now() - madeAt <= VISIBLE_WITHIN_MS / 2) return;
  throw new PunctualError(
    'DATABASE_UNAVAILABLE',
    'The database took too long to store the jobs; nothing was stored.',
    {
      retryAfter: 1,
    },
  );
}

/** For each job, in order, the id under which it is stored: its own, or that of an earlier job with its key. */
export async function submitJobs(pool: Pool, jobs: readonly NewJob[], now: number): Promise<string[]> {
  const madeAt = performance.now();
  if (jobs.some((job) => job.row.key !== null)) {
    return inTransaction(pool, async (db) => {
      const winners = await registerKeys(
        db,
        jobs.map((job) => job.row),
      );
      await insertJobs(
        db,
        jobs.filter((job, i) => winners[i] === job.row.id),
        now,
      );
      mustStillBeFound(madeAt);
      return winners;
    });
  }
  const live = jobs.every((job) => job.admitAt === null);
  if (live) await insertLive(pool, jobs, now);
  else {
    await inTransaction(pool, async (db) => {
      await insertJobs(db, jobs, now);
      mustStillBeFound(madeAt);
    });
  }
  return jobs.map((job) => job.row.id);
}

async function insertJobs(db: Queryable, jobs: readonly NewJob[], now: number): Promise<void> {
  await insertLive(
    db,
    jobs.filter((job) => job.admitAt === null),
    now,
  );
  await insertLater(
    db,
    jobs.filter((job) => job.admitAt !== null),
    now,
  );
}

/** Registers the keys of the rows that have one; answers with the winning id of each row. */
export async function registerKeys(
  db: Queryable,
  rows: readonly Pick<JobRow, 'id' | 'tenant' | 'key'>[],
): Promise<string[]> {
  const keyed = rows.filter((row) => row.key !== null);
  if (keyed.length === 0) return rows.map((row) => row.id);
  const tenants = keyed.map((row) => row.tenant);
  const keys = keyed.map((row) => row.key);
  for (;;) {
    await run(db, INSERT_KEYS, [tenants, keys, keyed.map((row) => row.id)]);
    const found = await run<{ place: number; job: string }>(db, FIND_KEYS, [tenants, keys]);
    // A key may be forgotten with its job's history between the two statements; then it is free again.
    if (found.length < keyed.length) continue;
    // By place, not by text: half a surrogate pair comes back from the database as another character.
    const winners = new Map(found.map(({ place, job }) => [keyed[place - 1]!.id, job]));
    return rows.map((row) => winners.get(row.id) ?? row.id);
  }
}

function countByTenant(jobs: readonly NewJob[]): [string[], number[]] {
  const counts = new Map<string, number>();
  for (const job of jobs) counts.set(job.row.tenant, (counts.get(job.row.tenant) ?? 0) + 1);
  return [[...counts.keys()], [...counts.values()]];
}

async function insertLive(db: Queryable, jobs: readonly NewJob[], now: number): Promise<void> {
  if (jobs.length === 0) return;
  await run(db, INSERT_JOBS, [...rowArrays(jobs.map((job) => job.row)), now, ...countByTenant(jobs)]);
}

async function insertLater(db: Queryable, jobs: readonly NewJob[], now: number): Promise<void> {
  if (jobs.length === 0) return;
  await run(db, INSERT_LATER, [
    ...rowArrays(jobs.map((job) => job.row)),
    jobs.map((job) => job.admitAt),
    jobs.map((job) => job.held),
    now,
    ...countByTenant(jobs),
  ]);
}
