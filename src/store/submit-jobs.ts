import { PunctualError } from '../core/errors.js';
import { Columns } from './columns.js';
import { inTransaction, type Pool, type Queryable, run, type Statement, statement } from './database.js';
import { column } from './job-columns.js';
import { type JobRow, NEW_JOB_COLUMNS } from './job-row.js';
import { namesHold, namesTaken, type Resolved, StaleNamesError } from './names.js';
import { earliestEnd } from './read-job.js';

/** Storing new jobs: one multi-row insert, whatever their number, with their count in the same transaction. */

/** Counts the stored jobs; its parameters $1 to $3 are the moment and `countByTenant`. */
export const COUNTED = `counted AS (
      INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
      SELECT $1::bigint, c.tenant, c.jobs FROM unnest($2::text[], $3::bigint[]) c(tenant, jobs)
    )`;

/**
 * How long after its ids were made a submission can become visible. The look-back reaches at least this far, so
 * a submission that would take longer is given up before its commit: half of this for everything up to the
 * COMMIT, half for the COMMIT itself (or for a single statement), which the pools' deadlines keep.
 */
export const VISIBLE_WITHIN_MS = 10_000;

/**
 * Stores rows only if the ids of their names are valid, and if their own ids are young enough for the look-back to find
 * them. The database checks the age, because the process may be suspended for any time before it sends the statement.
 * The parameters are those of `COUNTED`, of `namesHold`, the moment at which the ids were made, and then the rows.
 */
function insertInto(table: 'jobs' | 'later', names: string, rows: { source: string; all: string }): string {
  return `
    WITH valid AS MATERIALIZED (
      SELECT ${namesHold(4)} AS named,
        floor(extract(epoch FROM clock_timestamp()) * 1000) <= $9::bigint + ${VISIBLE_WITHIN_MS / 2} AS young
    ), stored AS (
      INSERT INTO punctual.${table} (${names})
      SELECT ${rows.all} FROM ${rows.source} WHERE (SELECT named AND young FROM valid)
    ), counted AS (
      INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
      SELECT $1::bigint, c.tenant, c.jobs FROM unnest($2::text[], $3::bigint[]) c(tenant, jobs)
      WHERE (SELECT named AND young FROM valid)
    )
    SELECT named, young FROM valid`;
}
const FIRST_OF_ROWS = 10;

const INSERT_JOBS = statement(
  'insert-jobs',
  insertInto('jobs', NEW_JOB_COLUMNS.names, NEW_JOB_COLUMNS.inSql(FIRST_OF_ROWS)),
);

/** A job to be stored: in `later` if it has an `admitAt`. */
export interface NewJob {
  readonly row: JobRow;
  readonly admitAt: number | null;
  readonly held: boolean;
}

const LATER_COLUMNS = new Columns<NewJob>([
  ...NEW_JOB_COLUMNS.inside((job: NewJob) => job.row),
  column('admit_at', (job) => job.admitAt),
  column('held', (job) => job.held),
]);

const INSERT_LATER = statement(
  'insert-later',
  insertInto('later', LATER_COLUMNS.names, LATER_COLUMNS.inSql(FIRST_OF_ROWS)),
);

const INSERT_KEYS = statement(
  'insert-keys',
  `
    INSERT INTO punctual.keys (tenant, key, job)
    SELECT u.tenant, u.key, u.job FROM unnest($1::text[], $2::text[], $3::uuid[]) u(tenant, key, job)
    ORDER BY u.tenant, u.key
    ON CONFLICT (tenant, key) DO NOTHING`,
);

/** A separate statement, because the winner of a conflict is invisible to the snapshot of the insert that lost. */
const FIND_KEYS = statement(
  'find-keys',
  `
    SELECT u.place, k.job FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u(tenant, key, place)
    JOIN punctual.keys k ON k.tenant = u.tenant AND k.key = u.key`,
);

/**
 * Those of the jobs that are in no place. All places are read in one statement, or a job that moves would seem to be
 * gone. Days of history are removed before the keys of their jobs, so for a while there are keys of jobs that are gone.
 */
const FIND_GONE = statement(
  'find-gone',
  `
    SELECT u.job FROM unnest($1::text[], $2::uuid[], $3::bigint[]) u(tenant, job, since)
    WHERE coalesce(
      (SELECT true FROM punctual.jobs j WHERE j.id = u.job),
      (SELECT true FROM punctual.later l WHERE l.id = u.job),
      (SELECT true FROM punctual.job_history h
       WHERE h.tenant = u.tenant AND h.id = u.job AND h.finished_at >= u.since LIMIT 1)) IS NULL`,
);

/**
 * Gives keys of gone jobs to new ones; the deletion of old keys, which compares the job too, then leaves them alone.
 */
const TAKE_OVER_KEYS = statement(
  'take-over-keys',
  `
    UPDATE punctual.keys k SET job = u.job
    FROM (SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::uuid[]) n(tenant, key, gone, job)
          ORDER BY n.tenant, n.key) u
    WHERE k.tenant = u.tenant AND k.key = u.key AND k.job = u.gone`,
);

/** The names that the jobs of a submission use, and when their ids were made. */
export interface Made {
  readonly names: readonly Resolved[];
  /** On the database's clock. */
  readonly at: number;
  /** On the clock of `performance`. */
  readonly since: number;
}

/** For each job, in order, the id under which it is stored: its own, or that of an earlier job with its key. */
export async function submitJobs(
  pool: Pool,
  jobs: readonly NewJob[],
  made: Made,
  now: number,
): Promise<string[]> {
  const store = (db: Queryable, jobs: readonly NewJob[]) => insertJobs(db, jobs, made, now);
  if (jobs.some((job) => job.row.definition.key !== null)) {
    return inTransaction(pool, async (db) => {
      const winners = await registerKeys(
        db,
        jobs.map((job) => job.row),
      );
      await store(
        db,
        jobs.filter((job, i) => winners[i] === job.row.id),
      );
      mustStillBeFound(made);
      return winners;
    });
  }
  if (jobs.every((job) => job.admitAt === null)) await store(pool, jobs);
  else {
    await inTransaction(pool, async (db) => {
      await store(db, jobs);
      mustStillBeFound(made);
    });
  }
  return jobs.map((job) => job.row.id);
}

function mustStillBeFound({ since }: Made): void {
  if (performance.now() - since > VISIBLE_WITHIN_MS / 2) throw tookTooLong();
}

function tookTooLong(): PunctualError {
  return new PunctualError(
    'DATABASE_UNAVAILABLE',
    'It took too long to store the jobs; nothing was stored. Try again.',
    { retryAfter: 1 },
  );
}

async function insertJobs(db: Queryable, jobs: readonly NewJob[], made: Made, now: number): Promise<void> {
  const live = jobs.filter((job) => job.admitAt === null).map((job) => job.row);
  const later = jobs.filter((job) => job.admitAt !== null);
  const insert = async (statement: Statement, rows: readonly JobRow[], parameters: unknown[]) => {
    if (rows.length === 0) return;
    const before = [now, ...countByTenant(rows), ...namesTaken(made.names), made.at];
    const [valid] = await run<{ named: boolean; young: boolean }>(db, statement, [...before, ...parameters]);
    if (!valid!.named) throw new StaleNamesError();
    if (!valid!.young) throw tookTooLong();
  };
  await insert(INSERT_JOBS, live, NEW_JOB_COLUMNS.parameters(live));
  await insert(
    INSERT_LATER,
    later.map((job) => job.row),
    LATER_COLUMNS.parameters(later),
  );
}

/**
 * Registers the keys of the rows that have one; answers with the winning id of each row, which is a job that exists.
 */
export async function registerKeys(db: Queryable, rows: readonly JobRow[]): Promise<string[]> {
  const keyed = rows.filter((row) => row.definition.key !== null);
  if (keyed.length === 0) return rows.map((row) => row.id);
  const tenants = keyed.map((row) => row.definition.tenant);
  const keys = keyed.map((row) => row.definition.key);
  const own = new Set(keyed.map((row) => row.id));
  for (;;) {
    await run(db, INSERT_KEYS, [tenants, keys, keyed.map((row) => row.id)]);
    const found = await run<{ place: number; job: string }>(db, FIND_KEYS, [tenants, keys]);
    // A key may be deleted with its job's history between the two statements; then it is free again.
    if (found.length < keyed.length) continue;
    // By index and not by key: a lone surrogate comes back from the database as another character.
    const winners = new Map(found.map(({ place, job }) => [keyed[place - 1]!.id, job]));
    const beaten = keyed.filter((row) => !own.has(winners.get(row.id)!));
    // Another submission may take a key over first; the next iteration finds its job.
    if (beaten.length === 0 || !(await takeOverKeys(db, beaten, winners)))
      return rows.map((row) => winners.get(row.id) ?? row.id);
  }
}

/** Takes keys over from jobs that are gone; answers whether there were any. */
export async function takeOverKeys(
  db: Queryable,
  rows: readonly JobRow[],
  winners: ReadonlyMap<string, string>,
): Promise<boolean> {
  const jobs = rows.map((row) => winners.get(row.id)!);
  const tenants = rows.map((row) => row.definition.tenant);
  const found = await run<{ job: string }>(db, FIND_GONE, [tenants, jobs, jobs.map(earliestEnd)]);
  if (found.length === 0) return false;
  const gone = new Set(found.map(({ job }) => job));
  const free = rows.filter((row) => gone.has(winners.get(row.id)!));
  await run(db, TAKE_OVER_KEYS, [
    free.map((row) => row.definition.tenant),
    free.map((row) => row.definition.key),
    free.map((row) => winners.get(row.id)),
    free.map((row) => row.id),
  ]);
  return true;
}

/** How many of the rows each tenant has, as two lists. */
export function countByTenant(rows: readonly JobRow[]): [string[], number[]] {
  const counts = new Map<string, number>();
  for (const { definition } of rows) counts.set(definition.tenant, (counts.get(definition.tenant) ?? 0) + 1);
  return [[...counts.keys()], [...counts.values()]];
}
