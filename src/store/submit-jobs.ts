import { inTransaction, type Pool, type Queryable, run, type Statement } from './database.js';
import { type JobRow, rowToJson } from './job-row.js';

/** Storing new jobs: one multi-row insert, whatever their number, with their count in the same transaction. */

const COLUMNS = `id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once, timeout_ms,
  created_at, start_before, task, created_by, key, concurrency_key, target, backoff, requires, payload`;

const INSERT_JOBS: Statement = {
  name: 'insert-jobs',
  text: `
    WITH counted AS (
      INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
      SELECT $21::bigint, c.tenant, c.jobs FROM unnest($22::text[], $23::bigint[]) c(tenant, jobs)
    )
    INSERT INTO punctual.jobs (${COLUMNS})
    SELECT * FROM unnest(
      $1::uuid[], $2::text[], $3::int[], $4::int[], $5::smallint[], $6::bigint[], $7::smallint[], $8::smallint[],
      $9::boolean[], $10::bigint[], $11::bigint[], $12::bigint[], $13::text[], $14::text[], $15::text[],
      $16::text[], $17::json[], $18::json[], $19::json[], $20::json[])`,
};

const INSERT_LATER: Statement = {
  name: 'insert-later',
  text: `
    WITH counted AS (
      INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
      SELECT $9::bigint, c.tenant, c.jobs FROM unnest($10::text[], $11::bigint[]) c(tenant, jobs)
    )
    INSERT INTO punctual.later (id, tenant, admit_at, held, start_before, queue, created_at, created_by, job)
    SELECT u.id, u.tenant, u.admit_at, u.held, u.start_before, '', u.created_at, u.created_by, u.job
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::boolean[], $5::bigint[], $6::bigint[], $7::text[],
      $8::json[]) u(id, tenant, admit_at, held, start_before, created_at, created_by, job)`,
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
    SELECT k.tenant, k.key, k.job FROM unnest($1::text[], $2::text[]) u(tenant, key)
    JOIN punctual.keys k ON k.tenant = u.tenant AND k.key = u.key`,
};

/** A job on its way into the store; `admitAt` sends it to `later`. */
export interface NewJob {
  readonly row: JobRow;
  readonly admitAt: number | null;
  readonly held: boolean;
}

/** For each job, in order, the id under which it is stored: its own, or that of an earlier job with its key. */
export async function submitJobs(pool: Pool, jobs: readonly NewJob[], now: number): Promise<string[]> {
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
      return winners;
    });
  }
  const live = jobs.every((job) => job.admitAt === null);
  if (live) await insertLive(pool, jobs, now);
  else await inTransaction(pool, (db) => insertJobs(db, jobs, now));
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
  await run(db, INSERT_KEYS, [tenants, keys, keyed.map((row) => row.id)]);
  const found = await run<{ tenant: string; key: string; job: string }>(db, FIND_KEYS, [tenants, keys]);
  const winners = new Map(found.map((row) => [`${row.tenant}\n${row.key}`, row.job]));
  return rows.map((row) => (row.key === null ? row.id : winners.get(`${row.tenant}\n${row.key}`)!));
}

function countByTenant(jobs: readonly NewJob[]): [string[], number[]] {
  const counts = new Map<string, number>();
  for (const job of jobs) counts.set(job.row.tenant, (counts.get(job.row.tenant) ?? 0) + 1);
  return [[...counts.keys()], [...counts.values()]];
}

async function insertLive(db: Queryable, jobs: readonly NewJob[], now: number): Promise<void> {
  if (jobs.length === 0) return;
  const column = <C extends keyof JobRow>(name: C): JobRow[C][] => jobs.map((job) => job.row[name]);
  await run(db, INSERT_JOBS, [
    column('id'),
    column('tenant'),
    column('queue'),
    column('needs'),
    column('rank'),
    column('run_at'),
    column('max_attempts'),
    column('max_losses'),
    column('at_most_once'),
    column('timeout_ms'),
    column('created_at'),
    column('start_before'),
    column('task'),
    column('created_by'),
    column('key'),
    column('concurrency_key'),
    column('target'),
    column('backoff'),
    column('requires'),
    column('payload'),
    now,
    ...countByTenant(jobs),
  ]);
}

async function insertLater(db: Queryable, jobs: readonly NewJob[], now: number): Promise<void> {
  if (jobs.length === 0) return;
  await run(db, INSERT_LATER, [
    jobs.map((job) => job.row.id),
    jobs.map((job) => job.row.tenant),
    jobs.map((job) => job.admitAt),
    jobs.map((job) => job.held),
    jobs.map((job) => job.row.start_before),
    jobs.map((job) => job.row.created_at),
    jobs.map((job) => job.row.created_by),
    jobs.map((job) => rowToJson(job.row)),
    now,
    ...countByTenant(jobs),
  ]);
}
