import type { AttemptOutcome } from '../core/job.js';
import { type Queryable, run, statement } from './database.js';
import { allEnded } from './ended-places.js';

/** When the attempts of the steps of a workflow ran. */

const startOf = (attempt: string) =>
  `coalesce((${attempt} ->> 'startedAt')::bigint, (${attempt} ->> 'claimedAt')::bigint)`;

/** The most earlier attempts of a step that are read one by one: a step may have had thousands. */
const MOST_EARLIER = 19;

/**
 * The attempts of steps that began after a moment: earlier ones belong to an earlier run of the workflow. A step that has ended
 * is found by the exact moment of its end.
 */
const READ_STEP_ATTEMPTS = statement(
  'read-step-attempts',
  `
    SELECT u.id, m.fence, m.at, m.outcome,
      (SELECT min(${startOf('a')}) FROM unnest(m.earlier_attempts) a WHERE ${startOf('a')} >= u.since) AS first_at,
      (SELECT json_agg(json_build_array(a -> 'fence', ${startOf('a')}, a -> 'finishedAt', a -> 'outcome') ORDER BY n)
        FROM unnest(m.earlier_attempts[greatest(1, cardinality(m.earlier_attempts) - ${MOST_EARLIER - 1}):])
          WITH ORDINALITY e(a, n)
        WHERE ${startOf('a')} >= u.since) AS earlier
    FROM unnest($2::uuid[], $3::bigint[], $4::bigint[]) u(id, finished_at, since)
    CROSS JOIN LATERAL (
      SELECT h.fence, coalesce(h.started_at, h.claimed_at) AS at, h.outcome, h.earlier_attempts FROM ${allEnded('h')}
      WHERE h.tenant = $1 AND h.id = u.id AND h.finished_at = u.finished_at
      UNION ALL
      SELECT c.fence, c.at, NULL, j.earlier_attempts FROM punctual.jobs j
      LEFT JOIN LATERAL (SELECT c.fence, coalesce(c.started_at, c.claimed_at) AS at
        FROM punctual.claims c WHERE c.job = j.id LIMIT 1) c ON true
      WHERE u.finished_at IS NULL AND j.id = u.id
      UNION ALL
      SELECT NULL, NULL, NULL, l.earlier_attempts FROM punctual.later l WHERE u.finished_at IS NULL AND l.id = u.id
      LIMIT 1) m`,
);

/** A step whose attempts are asked for. */
export interface AskedStep {
  readonly id: string;
  readonly finishedAt: number | null;
  /** When it could run. */
  readonly from: number;
}

/** An attempt of a step; what has not ended has neither end nor outcome. */
export interface AttemptTimes {
  readonly fence: number;
  readonly startedAt: number;
  readonly finishedAt: number | null;
  readonly outcome: AttemptOutcome | null;
}

/** The attempts of a step in this run of its workflow. */
export interface StepAttempts {
  /** When the first of all began. */
  readonly startedAt: number;
  /** The newest twenty, in their order. */
  readonly attempts: readonly AttemptTimes[];
}

type EarlierAttempt = [fence: number, startedAt: number, finishedAt: number, outcome: AttemptOutcome];

interface StepAttemptsRow extends Record<string, unknown> {
  readonly id: string;
  readonly fence: number | null;
  readonly at: number | null;
  readonly outcome: AttemptOutcome | null;
  readonly first_at: number | null;
  /** JSON of a list of `EarlierAttempt`. */
  readonly earlier: string | null;
}

/** The attempts of steps by their ids; those that have not run are missing. */
export async function readStepAttempts(
  db: Queryable,
  tenant: string,
  steps: readonly AskedStep[],
): Promise<Map<string, StepAttempts>> {
  if (steps.length === 0) return new Map();
  const rows = await run<StepAttemptsRow>(db, READ_STEP_ATTEMPTS, [
    tenant,
    steps.map(({ id }) => id),
    steps.map(({ finishedAt }) => finishedAt),
    steps.map(({ from }) => from),
  ]);
  const ends = new Map(steps.map(({ id, finishedAt }) => [id, finishedAt]));
  return new Map(
    rows.flatMap((row) => {
      const attempts = attemptsOf(row, ends.get(row.id) ?? null);
      const startedAt = row.first_at ?? row.at;
      return startedAt === null ? [] : [[row.id, { startedAt, attempts }] as const];
    }),
  );
}

function attemptsOf({ fence, at, outcome, earlier }: StepAttemptsRow, end: number | null): AttemptTimes[] {
  const before = earlier ? (JSON.parse(earlier) as EarlierAttempt[]) : [];
  const attempts = before.map(
    ([number, startedAt, finishedAt, how]): AttemptTimes => ({
      ...{ fence: number, startedAt, finishedAt, outcome: how },
    }),
  );
  if (fence !== null && at !== null) attempts.push({ fence, startedAt: at, finishedAt: end, outcome });
  return attempts;
}
