import type { RunIf } from '../core/workflow.js';
import { type Queryable, run, statement } from './database.js';
import { allEnded } from './ended-places.js';
import { select } from './job-columns.js';

/** Reading steps as they were submitted, so that their workflow can be submitted again. */

/** What a job keeps of its submission in whatever place it is. */
const SUBMITTED = [
  'queue',
  'rank',
  'max_attempts',
  'max_losses',
  'at_most_once',
  'timeout_ms',
  'task',
  'concurrency_key',
  'target',
  'backoff',
  'requires',
] as const;

const arm = (from: string, alias: string, of: string) =>
  `SELECT ${select(alias, SUBMITTED)}, CASE WHEN s.refers THEN NULL ELSE ${alias}.payload END AS payload
        FROM ${from} WHERE ${of}`;

/** One statement over all places; one that has ended is found by the exact moment of its end. */
const READ_SUBMITTED = statement(
  'read-submitted-steps',
  `
    SELECT p.* FROM (
    SELECT r.*, sum(coalesce(octet_length(r.payload::text), 0) + coalesce(octet_length(r.inner::text), 0))
      OVER (ORDER BY r.id ROWS UNBOUNDED PRECEDING EXCLUDE CURRENT ROW) AS before
    FROM (
    SELECT s.id, s.name, s.place, s.run_if AS "runIf", s.delay_ms AS "delayMs", s.wait, s.inner_graph AS inner, s.refers,
      s.hold,
      s.added_by IS NOT NULL AS "isAdded",
      CASE WHEN s.refers THEN s.template ELSE m.payload END AS payload,
      q.name AS queue, m.rank, m.max_attempts AS "maxAttempts", m.max_losses AS "maxLosses",
      m.at_most_once AS "atMostOnce", m.timeout_ms AS "timeoutMs", m.task, m.concurrency_key AS "concurrencyKey",
      m.target, m.backoff, m.requires
    FROM (
      SELECT s.* FROM punctual.steps s WHERE s.workflow = $2::uuid AND s.tenant = $1 AND s.id > $3::uuid
      ORDER BY s.id LIMIT $4) s
    LEFT JOIN LATERAL (
      ${arm('punctual.jobs j', 'j', 'j.id = s.id AND s.outcome IS NULL')}
      UNION ALL
      ${arm('punctual.later l', 'l', 'l.id = s.id AND s.outcome IS NULL')}
      UNION ALL
      ${arm(
        allEnded('h'),
        'h',
        `h.tenant = s.tenant AND h.id = s.id AND h.finished_at = coalesce(s.finished_at,
          (SELECT o.finished_at FROM punctual.outbox o WHERE o.job = s.id))`,
      )}
      LIMIT 1) m ON true
    LEFT JOIN punctual.queues q ON q.id = m.queue) r) p
    WHERE coalesce(p.before, 0) < $5::int ORDER BY p.id`,
);

/** A step as it was submitted. JSON fields are texts. */
export interface SubmittedStep extends Record<string, unknown> {
  readonly id: string;
  readonly name: string;
  readonly place: number;
  readonly runIf: RunIf;
  readonly delayMs: number;
  readonly wait: string | null;
  /** The workflow that it is. */
  readonly inner: string | null;
  readonly refers: boolean;
  readonly hold: boolean;
  /** Whether another step added it: it was no part of the submission. */
  readonly isAdded: boolean;
  /** With its references, not what they came to. */
  readonly payload: string;
  /** Null if its job has left history. */
  readonly queue: string | null;
  readonly rank: number;
  readonly maxAttempts: number;
  readonly maxLosses: number;
  readonly atMostOnce: boolean;
  readonly timeoutMs: number;
  readonly task: string | null;
  readonly concurrencyKey: string | null;
  readonly target: string | null;
  readonly backoff: string | null;
  readonly requires: string | null;
}

/** Some steps of a workflow with ids above the given one: until there are so many of them, or of their bytes; none if there is none. */
export function readSubmittedSteps(
  db: Queryable,
  tenant: string,
  workflow: string,
  after: string,
  limit: number,
  bytes: number,
): Promise<SubmittedStep[]> {
  return run(db, READ_SUBMITTED, [tenant, workflow, after, limit, bytes]);
}
