import { stands } from '../host/test-switches.js';
import { type Changed, changedRows, refusedOf } from './batch-statement.js';
import { FACTS, WORK } from './claims.js';
import type { Queryable } from './database.js';
import { type CamelRowOf, columnsOf, isIn, select, selectCamel } from './job-columns.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { SortedColumns } from './sorted-columns.js';

/**
 * The claim: a job is running from the moment this commits. The join with its live row proves that the job has not
 * ended, is due, and that this is its next fence; otherwise a late hint would start a finished job again, or one
 * that was postponed meanwhile. Only jobs that the answer counts as claimed may be handed over.
 */

/** One attempt to be claimed. */
export interface ClaimIntent {
  readonly id: string;
  readonly fence: number;
  readonly worker: string;
}

const INTENT_COLUMNS = new SortedColumns<ClaimIntent>([
  { name: 'fence', type: 'int', of: (intent) => intent.fence },
  { name: 'worker', type: 'uuid', of: (intent) => intent.worker },
]);
const INTENTS = INTENT_COLUMNS.inSql(7);

/** The columns that live and ended jobs share. */
const SHARED = columnsOf('jobs')
  .map(({ name }) => name)
  .filter((name) => isIn('job_history', name));

/**
 * The live jobs whose next fence this is; any job by its id when tests have removed this fence. The `+ 0` keeps the
 * planner from using the index of the order to find all due jobs.
 */
const CLAIMABLE = stands('claim-join')
  ? `punctual.jobs j
      WHERE j.id = ANY(${INTENTS.ids}) AND j.attempts + 1 = ${INTENTS.of('fence', 'j.id')} AND j.run_at + 0 <= $4`
  : `(SELECT ${select('j', SHARED)}, j.edited FROM punctual.jobs j
      UNION ALL SELECT ${select('h', SHARED)}, false FROM punctual.job_history h) j
      WHERE j.id = ANY(${INTENTS.ids})`;

interface ClaimShape {
  /** Columns of the job beyond those that every claim needs. */
  readonly columns: string;
  readonly where: string;
  /** A select over the part named `chosen`. */
  readonly answer: string;
}

function claimStatement(name: string, { columns, where, answer }: ClaimShape) {
  return leaderStatement(
    name,
    `chosen AS (
      SELECT j.id, ${INTENTS.of('fence', 'j.id')} AS fence, ${INTENTS.of('worker', 'j.id')} AS worker, j.tenant${columns}
      FROM ${CLAIMABLE} AND ${WHILE_TERM_LASTS}${where}
    ), claimed AS (
      INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
      SELECT id, fence, worker, $2, $4 FROM chosen
    ), counted AS (
      INSERT INTO punctual.tallies (at, tenant, jobs_assigned, lateness)
      SELECT $4, c.tenant, count(*), (
        SELECT l.lateness::bigint[] FROM unnest($5::text[], $6::text[]) l(tenant, lateness) WHERE l.tenant = c.tenant)
      FROM chosen c GROUP BY c.tenant
    ), answer AS (${answer})`,
  );
}

/** For jobs of which memory holds only what choosing needs: the answer returns what their attempts need. */
const CLAIM_JOBS = claimStatement('claim-jobs', {
  columns: `, ${select('j', [...FACTS, ...WORK])}`,
  where: '',
  answer: `SELECT ${selectCamel('c', ['id', ...FACTS, ...WORK])} FROM chosen c`,
});

/** For jobs whose rows this process stored and still holds: the answer returns only which were claimed. */
const CLAIM_KNOWN_JOBS = claimStatement('claim-known-jobs', {
  columns: '',
  where: stands('unedited') ? ' AND NOT j.edited' : '',
  answer: changedRows('chosen', 'id', 'cardinality($7::uuid[])'),
});

/** What a claim returns of a job. JSON columns are texts. */
export type ClaimedJob = CamelRowOf<'jobs', (typeof FACTS)[number] | (typeof WORK)[number]>;

/** A job that was claimed. */
export type ClaimedRow = ClaimedJob & { readonly id: string } & Record<string, unknown>;

type Lateness = ReadonlyMap<string, readonly number[]>;

/** Claims those of the jobs that can be claimed, and answers with exactly these. */
export function claimJobs(
  db: Queryable,
  term: TermKey,
  intents: readonly ClaimIntent[],
  now: number,
  latenessByTenant: Lateness,
): Promise<ClaimedRow[]> {
  return runAsLeader(db, term, CLAIM_JOBS, parameters(intents, now, latenessByTenant));
}

/** Claims jobs whose rows are in memory; answers with those that could not be claimed. */
export async function claimKnownJobs(
  db: Queryable,
  term: TermKey,
  intents: readonly ClaimIntent[],
  now: number,
  latenessByTenant: Lateness,
): Promise<ReadonlySet<string>> {
  const values = parameters(intents, now, latenessByTenant);
  const [answer] = await runAsLeader<Changed>(db, term, CLAIM_KNOWN_JOBS, values);
  return refusedOf(intents, answer);
}

function parameters(intents: readonly ClaimIntent[], now: number, lateness: Lateness): unknown[] {
  const histograms = [...lateness.values()].map((counts) => `{${counts.join(',')}}`);
  return [now, [...lateness.keys()], histograms, ...INTENT_COLUMNS.parameters(intents)];
}
