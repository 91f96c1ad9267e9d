import { BOUNDS } from '../core/histogram.js';
import { stands } from '../host/test-switches.js';
import { binaryArray } from './array-bytes.js';
import { type Changed, changedRows, NOT_HELD, refusedOf } from './batch-statement.js';
import { FACTS, WORK } from './claims.js';
import type { Queryable } from './database.js';
import { type CamelRowOf, columnsOf, isIn, select, selectCamel } from './job-columns.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { SortedColumns } from './sorted-columns.js';

/**
 * The claim: a job is running from the moment this commits. The join with its live row proves that the job has not
 * ended, is due, is no step of a workflow on hold, and that this is its next fence; otherwise a late hint would start a finished job again, or one
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
const INTENTS = INTENT_COLUMNS.inSql(9);

/** What is counted of the claims of one tenant. */
export interface ClaimCounts {
  readonly jobs: number;
  /** How late first attempts are: counts per bucket, and the sum in milliseconds. */
  readonly lateness: readonly number[];
  readonly latenessMs: number;
}

/** How late a first attempt among the claims `f` is. */
const LATE_BY = 'greatest(0, $4 - f.run_at)';
const FIRST_ATTEMPTS = 'f.tenant = c.tenant AND f.fence = 1';

/**
 * The counts of what was claimed. They were made ahead, for all that was to be claimed of a tenant; if some of it was
 * refused they would be too high, and are made here from the rows.
 */
const COUNTED = `
  SELECT $4, c.tenant, c.jobs,
    CASE WHEN c.jobs = l.jobs THEN l.lateness::bigint[] ELSE ARRAY(
      SELECT count(f.id) FROM generate_series(0, ${BOUNDS.length}) b LEFT JOIN chosen f
        ON ${FIRST_ATTEMPTS} AND width_bucket(${LATE_BY}, '{${BOUNDS.join(',')}}'::bigint[]) = b
      GROUP BY b ORDER BY b) END,
    CASE WHEN c.jobs = l.jobs THEN l.lateness_ms ELSE (
      SELECT coalesce(sum(${LATE_BY}), 0) FROM chosen f WHERE ${FIRST_ATTEMPTS}) END
  FROM (SELECT tenant, count(*) AS jobs FROM chosen GROUP BY tenant) c
  LEFT JOIN unnest($5::text[], $6::text[], $7::bigint[], $8::bigint[]) l(tenant, lateness, jobs, lateness_ms)
    ON l.tenant = c.tenant`;

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

/** The workflows of the jobs, as far as memory knows them; the first parameter after the intents. */
const WORKFLOWS = '$14::uuid[]';

/**
 * Those of them that are not on hold, in order. Each is looked up once, however many of its steps are claimed: looking it up
 * for every step was a quarter of the cost of a claim.
 */
const GOING = `
      SELECT ARRAY(
        SELECT u.id FROM unnest(${WORKFLOWS}) u(id)
        WHERE (SELECT w.held FROM punctual.workflows w WHERE w.id = u.id) IS NOT TRUE ORDER BY u.id) AS ids`;
const GOING_IDS = '(SELECT ids FROM going)';
/** The condition that a job is no step, or one of these: a step whose workflow memory does not name is refused. */
const IS_GOING = `(j.workflow IS NULL OR ${GOING_IDS}[width_bucket(j.workflow, ${GOING_IDS})] = j.workflow)`;

/** What a claim asks of the workflows of steps; nothing when tests have removed this fence. */
const [WHILE_NOT_HELD, WHILE_GOING] = stands('held-workflow')
  ? [` AND ${NOT_HELD}`, ` AND ${IS_GOING}`]
  : ['', ''];

interface ClaimShape {
  /** Parts of the WITH before the others. */
  readonly first?: string;
  /** Columns of the job beyond those that every claim needs. */
  readonly columns: string;
  readonly where: string;
  /** A select over the part named `chosen`. */
  readonly answer: string;
}

function claimStatement(name: string, { first = '', columns, where, answer }: ClaimShape) {
  return leaderStatement(
    name,
    `${first}chosen AS (
      SELECT j.id, ${INTENTS.of('fence', 'j.id')} AS fence, ${INTENTS.of('worker', 'j.id')} AS worker, j.tenant${columns}
      FROM ${CLAIMABLE} AND ${WHILE_TERM_LASTS}${where}
    ), claimed AS (
      INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
      SELECT id, fence, worker, $2, $4 FROM chosen
    ), counted AS (
      INSERT INTO punctual.tallies (at, tenant, jobs_assigned, lateness, lateness_ms) ${COUNTED}
    ), answer AS (${answer})`,
  );
}

/** What attempts need; both lists name the workflow. */
const CLAIMED = [...new Set([...FACTS, ...WORK])];

/** For jobs of which memory holds only what choosing needs: the answer returns what their attempts need. */
const CLAIM_JOBS = claimStatement('claim-jobs', {
  columns: `, ${select('j', CLAIMED)}`,
  where: WHILE_NOT_HELD,
  answer: `SELECT ${selectCamel('c', ['id', ...CLAIMED])} FROM chosen c`,
});

/** For jobs whose rows this process stored and still holds: the answer returns only which were claimed. */
const CLAIM_KNOWN_JOBS = claimStatement('claim-known-jobs', {
  first: `going AS MATERIALIZED (${GOING}
    ), `,
  columns: ', j.run_at',
  where: `${stands('unedited') ? ' AND NOT j.edited' : ''}${WHILE_GOING}`,
  answer: changedRows('chosen', 'id', `cardinality(${INTENTS.ids})`),
});

/** What a claim returns of a job. JSON columns are texts. */
export type ClaimedJob = CamelRowOf<'jobs', (typeof FACTS)[number] | (typeof WORK)[number]>;

/** A job that was claimed. */
export type ClaimedRow = ClaimedJob & { readonly id: string } & Record<string, unknown>;

/** By tenant, what is counted if everything is claimed. */
type Expected = ReadonlyMap<string, ClaimCounts>;

/** Claims those of the jobs that can be claimed, and answers with exactly these. */
export function claimJobs(
  db: Queryable,
  term: TermKey,
  intents: readonly ClaimIntent[],
  now: number,
  expected: Expected,
): Promise<ClaimedRow[]> {
  return runAsLeader(db, term, CLAIM_JOBS, parameters(intents, now, expected));
}

/**
 * Claims jobs whose rows are in memory; answers with those that could not be claimed. A step is claimed only if its workflow
 * is among the given ones.
 */
export async function claimKnownJobs(
  db: Queryable,
  term: TermKey,
  intents: readonly ClaimIntent[],
  now: number,
  expected: Expected,
  workflows: readonly string[],
): Promise<ReadonlySet<string>> {
  const values = [...parameters(intents, now, expected), binaryArray('uuid', workflows)];
  const [answer] = await runAsLeader<Changed>(db, term, CLAIM_KNOWN_JOBS, values);
  return refusedOf(intents, answer);
}

function parameters(intents: readonly ClaimIntent[], now: number, expected: Expected): unknown[] {
  const counts = [...expected.values()];
  return [
    now,
    [...expected.keys()],
    counts.map(({ lateness }) => `{${lateness.join(',')}}`),
    counts.map(({ jobs }) => jobs),
    counts.map(({ latenessMs }) => latenessMs),
    ...INTENT_COLUMNS.parameters(intents),
  ];
}
