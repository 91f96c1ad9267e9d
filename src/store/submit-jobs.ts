import { PunctualError } from '../core/errors.js';
import { Columns, parametersOf } from './columns.js';
import { inTransaction, type Pool, type Queryable, run, type Statement, statement } from './database.js';
import type { Keep } from './idempotency.js';
import { column } from './job-columns.js';
import { awaitsArtifact, type JobRow, NEW_JOB_COLUMNS, NEW_LATER_COLUMNS } from './job-row.js';
import type { KeyedJob } from './key-holders.js';
import { type KeyGuard, type Registered, registerKeys } from './keys.js';
import { namesHold, namesTaken, type Resolved, StaleNamesError } from './names.js';
import { takeRoom } from './tenant-usage.js';

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

/** For jobs that share their definition, as a single one does and those of a bulk mostly do. */
const ALIKE_COLUMNS = NEW_JOB_COLUMNS.shared();
const INSERT_JOBS = statement(
  'insert-jobs',
  insertInto('jobs', ALIKE_COLUMNS.names, ALIKE_COLUMNS.inSql(FIRST_OF_ROWS)),
);

const INSERT_VARIED = statement(
  'insert-varied-jobs',
  insertInto('jobs', NEW_JOB_COLUMNS.names, NEW_JOB_COLUMNS.inSql(FIRST_OF_ROWS)),
);

/** A job to be stored: in `later` if it has an `admitAt`. */
export interface NewJob extends KeyedJob {
  readonly admitAt: number | null;
}

const LATER_COLUMNS = new Columns<NewJob>([
  ...NEW_LATER_COLUMNS.inside((job: NewJob) => job.row),
  column('admit_at', (job) => job.admitAt),
  column('held', (job) => job.held),
  column('blocked', (job) => awaitsArtifact(job.row)),
]);

const INSERT_LATER = statement(
  'insert-later',
  insertInto('later', LATER_COLUMNS.names, LATER_COLUMNS.inSql(FIRST_OF_ROWS)),
);

/** The names that the jobs of a submission use, and when their ids were made. */
export interface Made {
  readonly names: readonly Resolved[];
  /** On the database's clock. */
  readonly at: number;
  /** On the clock of `performance`. */
  readonly since: number;
  /** The tenant of all the jobs, if it has a quota of jobs: room for them is taken in the transaction that stores them. */
  readonly counted?: string;
  /** Decides about the jobs that have the keys of these. */
  readonly guard?: KeyGuard;
}

/** The jobs of the submissions, in their order; null when all are new, as it is without keys. */
export type Registrations = readonly Registered[] | null;

/** What became of submissions. */
export interface Submitted {
  readonly registered: Registrations;
  /** The new jobs as they were stored: one may have taken what a later submission with its key says. */
  readonly fresh: readonly NewJob[];
}

/**
 * Stores the jobs. No job with a key may have a rule by which it replaces another: that is the leader's to do. The answer
 * is kept before the jobs are stored, because it may have to wait, and jobs must be visible soon after their ids are made.
 */
export async function submitJobs(
  pool: Pool,
  jobs: readonly NewJob[],
  made: Made,
  now: number,
  keep?: Keep<Registrations>,
): Promise<Submitted> {
  if (jobs.some((job) => job.row.definition.key !== null)) {
    return inTransaction(pool, async (db) => {
      const { registered } = await registerKeys(db, jobs, now, made.guard);
      const fresh = jobs.filter((job, i) => registered[i]!.id === job.row.id);
      await keep?.(db, registered);
      await storeNew(db, fresh, made, now);
      return { registered, fresh };
    });
  }
  const isOneStatement = made.counted === undefined && jobs.every((job) => job.admitAt === null);
  if (keep) {
    await inTransaction(pool, async (db) => {
      await keep(db, null);
      await storeNew(db, jobs, made, now);
    });
  } else if (isOneStatement) await insertJobs(pool, jobs, made, now);
  else await inTransaction(pool, (db) => storeNew(db, jobs, made, now));
  return { registered: null, fresh: jobs };
}

/** Inserts new jobs inside a transaction that is about to be committed. */
export async function storeNew(
  db: Queryable,
  jobs: readonly NewJob[],
  made: Made,
  now: number,
  take = takeRoom,
): Promise<void> {
  await takeRoomFor(db, jobs, made, take);
  await insertJobs(db, jobs, made, now);
  mustStillBeFound(made);
}

/** Takes room for the jobs if those of their tenant are counted. */
export async function takeRoomFor(
  db: Queryable,
  jobs: readonly Pick<NewJob, 'row' | 'admitAt'>[],
  { counted }: Made,
  take = takeRoom,
): Promise<void> {
  if (counted === undefined) return;
  const live = jobs.reduce((count, job) => count + (job.admitAt === null ? 1 : 0), 0);
  await take(db, counted, { live, later: jobs.length - live }, jobs);
}

/** Throws if the jobs became visible later than the look-back reaches. */
export function mustStillBeFound({ since }: Made): void {
  if (performance.now() - since > VISIBLE_WITHIN_MS / 2) throw tookTooLong();
}

/** The error for jobs whose ids are too old to be stored. */
export function tookTooLong(): PunctualError {
  return new PunctualError(
    'DATABASE_UNAVAILABLE',
    'It took too long to store the jobs; nothing was stored. Try again.',
    { retryAfter: 1 },
  );
}

async function insertJobs(db: Queryable, jobs: readonly NewJob[], made: Made, now: number): Promise<void> {
  const live = jobs.filter((job) => job.admitAt === null).map((job) => job.row);
  const later = jobs.filter((job) => job.admitAt !== null);
  const insert = async (statement: Statement, rows: readonly JobRow[], parameters: readonly unknown[]) => {
    const before = [now, ...countByTenant(rows), ...namesTaken(made.names), made.at];
    const [valid] = await run<{ named: boolean; young: boolean }>(db, statement, [...before, ...parameters]);
    if (!valid!.named) throw new StaleNamesError();
    if (!valid!.young) throw tookTooLong();
  };
  if (live.length > 0) {
    const areAlike = NEW_JOB_COLUMNS.isPartShared(live);
    const [columns, statement] = areAlike ? [ALIKE_COLUMNS, INSERT_JOBS] : [NEW_JOB_COLUMNS, INSERT_VARIED];
    await insert(statement, live, await parametersOf(columns, live));
  }
  if (later.length > 0) {
    const rows = later.map((job) => job.row);
    await insert(INSERT_LATER, rows, await parametersOf(LATER_COLUMNS, later));
  }
}

/** How many of the rows each tenant has, as two lists. */
export function countByTenant(rows: readonly JobRow[]): [string[], number[]] {
  const counts = new Map<string, number>();
  for (const { definition } of rows) counts.set(definition.tenant, (counts.get(definition.tenant) ?? 0) + 1);
  return [[...counts.keys()], [...counts.values()]];
}
