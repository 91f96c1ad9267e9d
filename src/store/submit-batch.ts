import type { OnMemberFailure } from '../core/batch.js';
import { Columns, parametersOf } from './columns.js';
import type { Queryable } from './database.js';
import { column } from './job-columns.js';
import { type JobRow, NEW_LATER_COLUMNS } from './job-row.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { namesHold, namesTaken, type Resolved, StaleNamesError } from './names.js';
import type { Scheduled } from './submit-workflow.js';

/** Storing a batch: its row and all its members in one statement, or nothing. */

/** A batch to be stored. */
export interface NewBatch {
  readonly id: string;
  readonly tenant: string;
  readonly onFailure: OnMemberFailure;
  readonly startTimeoutMs: number | null;
  readonly dueAt: number;
  /** The different queues and tasks of its members, as JSON. */
  readonly places: string;
  readonly createdBy: string;
  /** The schedule that makes it. */
  readonly scheduled: Scheduled | null;
}

/** The columns of members; exported for the test that runs every leader statement. */
export const MEMBER_COLUMNS = new Columns<JobRow>([
  ...NEW_LATER_COLUMNS.inside((row: JobRow) => row),
  // It is not admitted like others, but an admission time there must be.
  column('admit_at', ({ definition }) => definition.run_at),
]);

const FIRST_OF_MEMBERS = 20;
const MEMBERS = MEMBER_COLUMNS.inSql(FIRST_OF_MEMBERS);
const VALID = `(SELECT named FROM valid) AND ${WHILE_TERM_LASTS}`;

const STORE_BATCH = leaderStatement(
  'store-batch',
  `valid AS MATERIALIZED (SELECT ${namesHold(5)} AS named),
  made AS (
    INSERT INTO punctual.batches (id, tenant, on_failure, members, places, due_at, start_timeout_ms, created_at, created_by,
      schedule, occurrence)
    SELECT $10::uuid, $11::text, $12::text, $13::uuid[], $14::json, $15::bigint, $16::bigint, $4::bigint, $17::text,
      $18::text, $19::bigint
    WHERE ${VALID}
  ), stored AS (
    INSERT INTO punctual.later (${MEMBER_COLUMNS.names}, blocked, batch, schedule, occurrence)
    SELECT ${MEMBERS.all}, true, $10::uuid, $18::text, $19::bigint FROM ${MEMBERS.source} WHERE ${VALID}
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_submitted, batches_submitted)
    SELECT $4::bigint, $11::text, cardinality($13::uuid[]), 1 WHERE ${VALID}
  ), answer AS (SELECT named FROM valid)`,
);

/** Stores a batch and its members; throws StaleNamesError, with nothing done, if the names are not what they were. */
export async function storeBatch(
  db: Queryable,
  term: TermKey,
  batch: NewBatch,
  members: readonly JobRow[],
  names: readonly Resolved[],
  now: number,
): Promise<void> {
  const values = [
    ...[now, ...namesTaken(names), batch.id, batch.tenant, batch.onFailure],
    ...[members.map(({ id }) => id), batch.places, batch.dueAt, batch.startTimeoutMs, batch.createdBy],
    ...[batch.scheduled?.schedule ?? null, batch.scheduled?.occurrence ?? null],
    ...(await parametersOf(MEMBER_COLUMNS, members)),
  ];
  const [answer] = await runAsLeader<{ named: boolean }>(db, term, STORE_BATCH, values);
  if (!answer?.named) throw new StaleNamesError();
}
