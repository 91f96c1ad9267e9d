import type { Execution } from '../core/execution.js';
import type { JobState } from '../core/job.js';
import { assertTenant } from './assert-tenant.js';
import { byIndex } from './batch-statement.js';
import { allEnded } from './ended-places.js';
import { isIn, READ_COLUMNS, type ReadColumn, type RowOf, SMALL_COLUMNS, typeOf } from './job-columns.js';

/**
 * Reading jobs from all places with the same columns. The arms are joined by UNION ALL inside a single
 * statement: with one statement per place, a job that moves between two places would be found in neither.
 */

/** The select of one place; `set` gives the values of what is not a column of its table. */
function arm(place: Place, alias: string, set: { readonly [N in ReadColumn | 'raw']?: string }): string {
  const table = TABLES[place];
  const values = READ_COLUMNS.map((name) => {
    if (set[name] !== undefined) return `${set[name]} AS ${name}`;
    if (isIn(table, name)) return `${alias}.${name}`;
    return place === 'live' && isIn('claims', name) ? `c.${name}` : `NULL::${typeOf(name)} AS ${name}`;
  });
  return `
  SELECT '${place}' AS place, ${set.raw ?? 'false'} AS raw, ${values.join(', ')}
  FROM ${place === 'history' ? allEnded(alias) : `punctual.${table} ${alias}`}`;
}

type Place = 'live' | 'later' | 'history';
const TABLES = { live: 'jobs', later: 'later', history: 'job_history' } as const;

/** Live jobs: waiting or running. */
export const LIVE_ARM = `${arm('live', 'j', {
  queue: 'q.name',
  held: 'false',
  state: `CASE WHEN c.job IS NULL THEN 'pending' ELSE 'running' END`,
})}
  JOIN punctual.queues q ON q.id = j.queue
  LEFT JOIN punctual.claims c ON ${byIndex('c.job', 'j.id')}`;

/**
 * Jobs not admitted yet. For an unparsed one, what its submission says is read from the JSON, the rest is a default.
 */
export const LATER_ARM = `${arm('later', 'l', {
  raw: 'l.submission IS NOT NULL',
  queue: `coalesce(q.name, s.raw ->> 'queue', 'default')`,
  state: `CASE WHEN l.blocked THEN 'blocked' ELSE 'pending' END`,
  rank: 'coalesce(l.rank, 5::smallint)',
  run_at: 'coalesce(l.run_at, l.admit_at)',
  max_attempts: 'coalesce(l.max_attempts, 4::smallint)',
  max_losses: 'coalesce(l.max_losses, 3::smallint)',
  at_most_once: 'coalesce(l.at_most_once, false)',
  timeout_ms: 'coalesce(l.timeout_ms, 1200000)',
  task: `coalesce(l.task, s.raw ->> 'task')`,
  target: `coalesce(l.target, s.raw -> 'target')`,
  payload: `coalesce(l.payload, s.raw -> 'payload', 'null'::json)`,
})}
  CROSS JOIN LATERAL punctual.readable(l.submission) s(raw)
  LEFT JOIN punctual.queues q ON q.id = l.queue`;

/** Ended jobs. */
export const HISTORY_ARM = `${arm('history', 'h', { queue: 'q.name', held: 'false' })}
  JOIN punctual.queues q ON q.id = h.queue`;

/** Whether a step waits for something else than steps; what is over is known by the state of its job. */
const STEP_WAITS = 's.released AND s.outcome IS NULL AND (s.wait IS NOT NULL OR s.inner_graph IS NOT NULL)';

/** What a step waits for; `null` where it does not. */
export const STEP_WAIT_COLUMNS = `
      CASE WHEN ${STEP_WAITS} THEN true END AS step_waits,
      CASE WHEN ${STEP_WAITS} THEN s.wait ->> 'event' END AS step_event,
      CASE WHEN ${STEP_WAITS} AND s.wait IS NOT NULL THEN s.wake_at END AS step_until`;

/** Joined to jobs `p`: the step of its workflow that a job is. */
export const STEP_OF_JOB = `LEFT JOIN LATERAL (
      SELECT s.name AS step, s.inner_workflow AS step_inner,${STEP_WAIT_COLUMNS}
      FROM punctual.steps s WHERE s.id = p.id AND p.workflow IS NOT NULL) w ON true`;

/** The columns of that. */
export const STEP_COLUMNS_OF_JOB = 'step, step_inner, step_waits, step_event, step_until';

/** What a step waits for besides steps. */
export interface StepWaitRow {
  readonly step_waits: boolean | null;
  readonly step_event: string | null;
  readonly step_until: number | null;
}

/** The columns of the arms that are always small. */
export const SMALL = `place, raw, ${SMALL_COLUMNS.join(', ')}`;

/** The most attempts of one job that are read: a job may have had thousands, each with an error. */
const MAX_ATTEMPTS_READ = 100;

/** The newest attempts as one JSON text, which the driver parses far faster than an array of texts. */
export const NEWEST_ATTEMPTS = `array_to_json(
  earlier_attempts[greatest(1, cardinality(earlier_attempts) - ${MAX_ATTEMPTS_READ - 1}):])`;

/** The number of earlier attempts. */
export const ATTEMPT_COUNT = 'coalesce(cardinality(earlier_attempts), 0)';

/** A stored attempt, as JSON in `earlier_attempts`. */
export interface StoredAttempt {
  readonly fence: number;
  readonly epoch: number;
  readonly worker: string;
  readonly claimedAt: number;
  readonly startedAt: number | null;
  readonly finishedAt: number;
  readonly outcome: string;
  readonly error: { message: string; code?: string; stack?: string } | null;
  /** How it ran a program; missing if it ran none. */
  readonly execution?: Execution | null;
}

/** A job read from any place. JSON columns are texts. */
export interface PlacedRow
  extends Omit<
      RowOf<'jobs' | 'claims' | 'job_history', ReadColumn>,
      'queue' | 'state' | 'earlier_attempts' | 'finished_at'
    >,
    StepWaitRow,
    Record<string, unknown> {
  /** The name of the step that it is. */
  readonly step: string | null;
  /** The workflow that the step has started. */
  readonly step_inner: string | null;
  readonly place: Place;
  /** A submission of a caller's transaction that has not been parsed yet. */
  readonly raw: boolean;
  /** The name of the queue. */
  readonly queue: string;
  readonly state: JobState;
  /** The newest of its earlier attempts. */
  readonly earlier_attempts: StoredAttempt[] | null;
  /** The number of its earlier attempts. */
  readonly earlier_count: number;
  readonly finished_at: number | null;
}

/**
 * A row from the database with its attempts parsed. Whoever reads single jobs is exempt from row-level security, so that
 * no job of another tenant is ever shown is asserted here.
 */
export function toPlacedRow<R extends PlacedRow>(tenant: string, row: R): R {
  assertTenant(tenant, row);
  const attempts: unknown = row.earlier_attempts;
  return typeof attempts === 'string' ? { ...row, earlier_attempts: JSON.parse(attempts) } : row;
}
