import type { ClaimCounts, ClaimIntent } from './claim-jobs.js';
import { FACTS } from './claims.js';
import type { Queryable } from './database.js';
import { type CamelRowOf, insertMoved, selectCamel } from './job-columns.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { SortedColumns } from './sorted-columns.js';

/** The start of a batch, and its undoing: all members in one statement, or none. */

const INTENT_COLUMNS = new SortedColumns<ClaimIntent>([
  { name: 'fence', type: 'int', of: (intent) => intent.fence },
  { name: 'worker', type: 'uuid', of: (intent) => intent.worker },
]);
const INTENTS = INTENT_COLUMNS.inSql(9);

/**
 * Moves all members to the live jobs and claims them, or does nothing. The rows are locked first, and everything else
 * hangs on there being as many as members. Claims are inserted from the rows that the DELETE returns: parts of one
 * statement do not see each other's changes, so a claim that joined `jobs` would find none of them.
 */
const START_BATCH = leaderStatement(
  'start-batch',
  `locked AS (
    SELECT l.id FROM punctual.later l
    WHERE l.id = ANY(${INTENTS.ids}) AND l.batch = $5::uuid AND l.blocked AND l.artifact IS NULL
      AND l.attempts + 1 = ${INTENTS.of('fence', 'l.id')} AND ${WHILE_TERM_LASTS}
    FOR UPDATE
  ), gone AS (
    DELETE FROM punctual.later l
    WHERE l.id = ANY(ARRAY(SELECT id FROM locked)) AND (SELECT count(*) FROM locked) = cardinality(${INTENTS.ids})
    RETURNING l.*
  ), moved AS (
    ${insertMoved({ from: 'later', to: 'jobs', rows: 'gone', set: { edited: 'true' } })}
  ), claimed AS (
    INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at)
    SELECT g.id, ${INTENTS.of('fence', 'g.id')}, ${INTENTS.of('worker', 'g.id')}, $2, $4 FROM gone g
  ), started AS (
    UPDATE punctual.batches b SET state = 'running', started_at = $4::bigint
    WHERE b.id = $5::uuid AND EXISTS (SELECT 1 FROM gone)
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_assigned, lateness, lateness_ms, batches_started)
    SELECT $4::bigint, $6::text, count(*), $7::bigint[], $8::bigint, 1 FROM gone HAVING count(*) > 0
  ), answer AS (SELECT ${selectCamel('g', ['id', ...FACTS])} FROM gone g)`,
);

/** What the start of a batch returns of a member. */
export type StartedMember = CamelRowOf<'jobs', 'id' | (typeof FACTS)[number]> & Record<string, unknown>;

/** A batch that is to start. */
interface Start {
  readonly id: string;
  readonly tenant: string;
  /** What is counted of its claims. */
  readonly counts: ClaimCounts;
}

/** Starts all members of a batch, each with its worker; answers with none if one of them cannot start. */
export function startBatch(
  db: Queryable,
  term: TermKey,
  { id, tenant, counts }: Start,
  intents: readonly ClaimIntent[],
  now: number,
): Promise<StartedMember[]> {
  const values = [now, id, tenant, counts.lateness, counts.latenessMs, ...INTENT_COLUMNS.parameters(intents)];
  return runAsLeader(db, term, START_BATCH, values);
}

/** A claim of a member that is given up. */
export interface VoidedClaim {
  readonly id: string;
  readonly fence: number;
  /** The attempt as JSON, appended to the member's earlier attempts; null when nobody was ever handed it. */
  readonly attempt: string | null;
}

const VOIDED_COLUMNS = new SortedColumns<VoidedClaim>([
  { name: 'fence', type: 'int', of: (claim) => claim.fence },
  { name: 'attempt', type: 'json', of: (claim) => claim.attempt },
]);
const VOIDED = VOIDED_COLUMNS.inSql(5);
const ATTEMPT = VOIDED.of('attempt', 'm.id');

/**
 * Takes the start of a batch back, none of whose members has begun: all wait again, under the next fences. Nothing is done
 * unless all of them are claimed as the leader thinks.
 */
const VOID_BATCH = leaderStatement(
  'void-batch',
  `locked AS (
    SELECT c.job FROM punctual.claims c
    WHERE c.job = ANY(${VOIDED.ids}) AND c.fence = ${VOIDED.of('fence', 'c.job')} AND ${WHILE_TERM_LASTS}
    FOR UPDATE
  ), freed AS (
    DELETE FROM punctual.claims c
    WHERE c.job = ANY(ARRAY(SELECT job FROM locked)) AND (SELECT count(*) FROM locked) = cardinality(${VOIDED.ids})
    RETURNING c.job
  ), gone AS (
    DELETE FROM punctual.jobs j WHERE j.id = ANY(ARRAY(SELECT job FROM freed)) RETURNING j.*
  ), moved AS (
    ${insertMoved({
      from: 'jobs',
      to: 'later',
      rows: 'gone',
      set: {
        attempts: VOIDED.of('fence', 'm.id'),
        earlier_attempts: `CASE WHEN (${ATTEMPT}) IS NULL THEN m.earlier_attempts
        ELSE array_append(m.earlier_attempts, ${ATTEMPT}) END`,
        admit_at: 'm.run_at',
        blocked: 'true',
      },
    })}
  ), waiting AS (
    UPDATE punctual.batches b SET state = 'pending', started_at = NULL
    WHERE b.id = $4::uuid AND EXISTS (SELECT 1 FROM gone)
  ), answer AS (SELECT g.id FROM gone g)`,
);

/** Takes the start of a batch back; answers whether it did. */
export async function voidBatch(
  db: Queryable,
  term: TermKey,
  id: string,
  claims: readonly VoidedClaim[],
): Promise<boolean> {
  const rows = await runAsLeader(db, term, VOID_BATCH, [id, ...VOIDED_COLUMNS.parameters(claims)]);
  return rows.length > 0;
}
