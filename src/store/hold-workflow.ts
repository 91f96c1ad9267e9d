import { byIndex, NOT_CLAIMED } from './batch-statement.js';
import type { Queryable } from './database.js';
import { insertMoved } from './job-columns.js';
import {
  auditedStatement,
  leaderStatement,
  runAsLeader,
  type TermKey,
  WHILE_TERM_LASTS,
} from './leader-statement.js';
import { selectWaiting, type Waiting } from './read-backlog.js';
import { NEVER } from './submit-workflow.js';

/**
 * Holding whole workflows. The flag in the workflow's row decides: every portion reads it, and no claim takes a step of a
 * workflow that has it. Steps that could run are parked besides, page by page, so that they do not stand in the way of other
 * jobs: their jobs are blocked rows of `later`, which the hold of a single job has nothing to do with.
 */

const HOLD_WORKFLOW = auditedStatement(
  'hold-workflow',
  `answer AS (
    UPDATE punctual.workflows w SET held = $6::boolean, held_with_outer = $6::boolean AND $7::boolean, swept = false
    WHERE w.id = $5::uuid AND w.tenant = $4::text AND w.state = 'running' AND ${WHILE_TERM_LASTS}
      AND CASE
        WHEN w.held <> $6::boolean THEN $6::boolean OR NOT $7::boolean OR w.held_with_outer
        -- Who holds it by itself wants it to stay so when the one around it is released.
        ELSE $6::boolean AND w.held_with_outer AND NOT $7::boolean END
    RETURNING w.id
  )`,
);

/**
 * Holds or releases a running workflow; answers whether that changed anything. `withOuter` is for one inside another, which is
 * held and released with it: a hold of its own stays.
 */
export async function holdWorkflow(
  db: Queryable,
  term: TermKey,
  tenant: string,
  id: string,
  held: boolean,
  withOuter = false,
): Promise<boolean> {
  return (await runAsLeader(db, term, HOLD_WORKFLOW, [tenant, id, held, withOuter])).length > 0;
}

const PARK_STEPS = leaderStatement(
  'park-steps',
  `gone AS (
    DELETE FROM punctual.jobs j USING unnest($4::uuid[]) u(id)
    WHERE ${byIndex('j.id', 'u.id')} AND ${NOT_CLAIMED} AND ${WHILE_TERM_LASTS}
    RETURNING j.*
  ), moved AS (
    ${insertMoved({
      from: 'jobs',
      to: 'later',
      rows: 'gone',
      set: { admit_at: String(NEVER), held: 'false', blocked: 'true' },
    })}
    RETURNING id
  ), stopped AS (
    UPDATE punctual.later l SET blocked = true, admit_at = ${NEVER} FROM unnest($4::uuid[]) u(id)
    WHERE ${byIndex('l.id', 'u.id')} AND NOT l.blocked AND ${WHILE_TERM_LASTS}
    RETURNING l.id
  ), marked AS (
    UPDATE punctual.steps s SET parked = true
    WHERE s.id = ANY (ARRAY(SELECT id FROM gone) || ARRAY(SELECT id FROM stopped))
  ), answer AS (SELECT (SELECT count(*) FROM moved) AS moved, (SELECT count(*) FROM stopped) AS stopped)`,
);

/** What became of steps that were to be parked. */
export interface Parked {
  /** Those that were in the live table. */
  readonly moved: number;
  /** Those that were in `later` already. */
  readonly stopped: number;
}

/** Parks steps whose jobs wait and could run. */
export async function parkSteps(db: Queryable, term: TermKey, ids: readonly string[]): Promise<Parked> {
  const [row] = await runAsLeader<Parked & Record<string, unknown>>(db, term, PARK_STEPS, [ids]);
  return row ?? { moved: 0, stopped: 0 };
}

/** When a step is due that goes on: never before that, so that it neither is late nor overtakes its queue. */
const DUE = 'greatest(l.run_at, $5::bigint)';
/** Whether it waits in `later`: for its artifact, on hold by itself, or due far ahead. */
const STAYS = `(l.held OR l.artifact IS NOT NULL OR ${DUE} > $7::bigint)`;

const UNPARK_STEPS = leaderStatement(
  'unpark-steps',
  `chosen AS MATERIALIZED (
    SELECT s.id FROM unnest($4::uuid[]) u(id) JOIN punctual.steps s ON ${byIndex('s.id', 'u.id')}
    WHERE s.parked AND ${WHILE_TERM_LASTS}
  ), postponed AS (
    UPDATE punctual.later l SET blocked = l.artifact IS NOT NULL, run_at = ${DUE},
      admit_at = CASE WHEN l.artifact IS NULL THEN greatest(${DUE} - $6::bigint, $5::bigint) ELSE l.admit_at END
    WHERE l.id = ANY (ARRAY(SELECT id FROM chosen)) AND l.blocked AND ${STAYS}
    RETURNING l.id
  ), freed AS (
    DELETE FROM punctual.later l
    WHERE l.id = ANY (ARRAY(SELECT id FROM chosen)) AND l.blocked AND NOT ${STAYS}
    RETURNING l.*, ${DUE} AS new_run_at
  ), live AS (
    ${insertMoved({ from: 'later', to: 'jobs', rows: 'freed', set: { run_at: 'm.new_run_at', edited: 'true' } })}
    RETURNING ${selectWaiting('jobs', 'jobs.size_kib')}
  ), marked AS (
    UPDATE punctual.steps s SET parked = false WHERE s.id = ANY (ARRAY(SELECT id FROM chosen))
  ), answer AS (
    SELECT (SELECT count(*) FROM chosen) AS chosen, (SELECT json_agg(l) FROM live l) AS live,
      (SELECT count(*) FROM postponed) AS postponed
  )`,
);

/** Lets parked steps go on; answers with those that are in the live table. */
export async function unparkSteps(
  db: Queryable,
  term: TermKey,
  ids: readonly string[],
  now: number,
  laterThreshold: number,
): Promise<readonly Waiting[]> {
  const values = [ids, now, Math.floor((laterThreshold * 2) / 3), now + laterThreshold];
  const [row] = await runAsLeader<{ live: string | null }>(db, term, UNPARK_STEPS, values);
  return row?.live ? (JSON.parse(row.live) as Waiting[]) : [];
}
