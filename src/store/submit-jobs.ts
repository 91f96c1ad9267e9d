import { PunctualError } from '../core/errors.js';
import { Columns } from './columns.js';
import { inTransaction, type Pool, type Queryable, run, type Statement } from './database.js';
import { JOB_COLUMNS, type JobRow } from './job-row.js';

/** Storing new jobs: one multi-row insert, whatever their number, with their count in the same transaction. */

/** Counts what is stored; the parameters before those of the rows are the moment, and `countByTenant`. */
export const COUNTED = `counted AS (
      INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
      SELECT $1::bigint, c.tenant, c.jobs FROM unnest($2::text[], $3::bigint[]) c(tenant, jobs)
    )`;

const LIVE = JOB_COLUMNS.inSql(4);

const INSERT_JOBS: Statement = {
  name: 'insert-jobs',
  text: `
    WITH ${COUNTED}
    INSERT INTO punctual.jobs (${JOB_COLUMNS.names}) SELECT ${LIVE.all} FROM ${LIVE.source}`,
};

/** A job on its way into the store; `admitAt` sends it to `later`. */
export interface NewJob {
  readonly row: JobRow;
  readonly admitAt: number | null;
  readonly held: boolean;
}

const LATER_COLUMNS = new Columns<NewJob>([
  ...JOB_COLUMNS.inside((job: NewJob) => job.row),
  { name: 'admit_at', type: 'bigint', of: (job) => job.admitAt },
  { name: 'held', type: 'boolean', of: (job) => job.held },
]);
const LATER = LATER_COLUMNS.inSql(4);

const INSERT_LATER: Statement = {
  name: 'insert-later',
  text: `
    WITH ${COUNTED}
    INSERT INTO punctual.later (${LATER_COLUMNS.names}) SELECT ${LATER.all} FROM ${LATER.source}`,
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
  if (jobs.some((job) => job.row.definition.key !== null)) {
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
export async function registerKeys(db: Queryable, rows: readonly JobRow[]): Promise<string[]> {
  const keyed = rows.filter((row) => row.definition.key !== null);
  if (keyed.length === 0) return rows.map((row) => row.id);
  const tenants = keyed.map((row) => row.definition.tenant);
  const keys = keyed.map((row) => row.definition.key);
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

/** How many of the rows each tenant has, as two lists. */
export function countByTenant(rows: readonly JobRow[]): [string[], number[]] {
  const counts = new Map<string, number>();
  for (const { definition } of rows) counts.set(definition.tenant, (counts.get(definition.tenant) ?? 0) + 1);
  return [[...counts.keys()], [...counts.values()]];
}

async function insertLive(db: Queryable, jobs: readonly NewJob[], now: number): Promise<void> {
  if (jobs.length === 0) return;
  const rows = jobs.map((job) => job.row);
  await run(db, INSERT_JOBS, [now, ...countByTenant(rows), ...JOB_COLUMNS.parameters(rows)]);
}

async function insertLater(db: Queryable, jobs: readonly NewJob[], now: number): Promise<void> {
  if (jobs.length === 0) return;
  const counts = countByTenant(jobs.map((job) => job.row));
  await run(db, INSERT_LATER, [now, ...counts, ...LATER_COLUMNS.parameters(jobs)]);
}
