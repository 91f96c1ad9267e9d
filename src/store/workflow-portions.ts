import type { EndState } from '../core/job.js';
import type { FailurePolicy, RunIf, WorkflowEnd } from '../core/workflow.js';
import { binaryArray } from './array-bytes.js';
import { textArray } from './array-text.js';
import { byIndex } from './batch-statement.js';
import { type Queryable, run, statement } from './database.js';
import { ENDED_STEPS, type EndedStep, endedSteps, endParts } from './ended-jobs.js';
import { insertMoved } from './job-columns.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { newSize } from './place-jobs.js';
import { selectWaiting, type Waiting } from './read-backlog.js';

/**
 * Counting the ends of steps. The executor reads a portion, decides about it in memory, and writes it in one statement.
 * Nobody else writes these rows, and the statement is fenced by the term, so what was read holds until it is written.
 */

/** A step that has ended and whose end was passed on up to `place`. */
export interface PendingEnd extends EndedStep {
  readonly place: string | null;
}

const READ_OUTBOX = statement(
  'read-outbox',
  `
    SELECT o.job, o.workflow, o.state, o.finished_at AS "finishedAt", o.place FROM punctual.outbox o
    WHERE o.job > $1::uuid ORDER BY o.job LIMIT $2`,
);

/** By the index of steps: the outbox has none for workflows, which every end would have to pay for. */
const READ_OUTBOX_OF = statement(
  'read-outbox-of',
  `
    SELECT o.job, o.workflow, o.state, o.finished_at AS "finishedAt", o.place
    FROM punctual.steps s JOIN punctual.outbox o ON ${byIndex('o.job', 's.id')} WHERE s.workflow = $1 LIMIT $2`,
);

const FIND_OUTBOX = statement(
  'find-outbox',
  'SELECT o.job FROM punctual.outbox o WHERE o.job = ANY($1::uuid[])',
);

/** Ends that are not counted yet, in the order of their ids. */
export function readOutbox(
  db: Queryable,
  after: string,
  limit: number,
): Promise<(PendingEnd & Record<string, unknown>)[]> {
  return run(db, READ_OUTBOX, [after, limit]);
}

/** Ends of the steps of one workflow that are not counted yet. */
export function readOutboxOf(
  db: Queryable,
  workflow: string,
  limit: number,
): Promise<(PendingEnd & Record<string, unknown>)[]> {
  return run(db, READ_OUTBOX_OF, [workflow, limit]);
}

/** Which of these steps have ends that are not counted yet. */
export async function findOutbox(db: Queryable, jobs: readonly string[]): Promise<Set<string>> {
  const rows = await run<{ job: string }>(db, FIND_OUTBOX, [jobs]);
  return new Set(rows.map(({ job }) => job));
}

/**
 * The edges of the first ends, no more than $3 in all, in the order of the ends and of the children; a row per child with
 * the numbers of the ends that it waits for, because thousands of ends may have one child, whose step is read once.
 */
const READ_EDGES = statement(
  'read-edges',
  `
    SELECT c.ends, s.id, s.run_if AS "runIf", s.parents, s.parents_left AS "parentsLeft",
      s.ok, s.bad, s.released, s.outcome, s.delay_ms AS "delayMs", s.wait::text AS wait, s.inner_graph IS NOT NULL AS inner,
      s.refers
    FROM (
      SELECT e.child, string_agg(e.n::text, ' ') AS ends
      FROM (
        SELECT u.n, e.child FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY u(job, place, n)
        CROSS JOIN LATERAL (
          SELECT e.child FROM punctual.edges e WHERE e.parent = u.job AND e.child > u.place ORDER BY e.child LIMIT $3) e
        ORDER BY u.n, e.child LIMIT $3) e
      GROUP BY e.child) c
    JOIN punctual.steps s ON ${byIndex('s.id', 'c.child')}`,
);

/** The ended steps that need more than their state to be counted: some parents ended badly, or a workflow runs for them. */
const READ_SOURCES = statement(
  'read-sources',
  `
    SELECT s.id, s.bad,
      (SELECT i.id FROM punctual.workflows i WHERE i.id = s.inner_workflow AND i.state = 'running') AS "innerRunning"
    FROM unnest($1::uuid[]) u(id) JOIN punctual.steps s ON ${byIndex('s.id', 'u.id')}
    WHERE s.bad > 0 OR s.inner_workflow IS NOT NULL`,
);

const READ_WORKFLOWS_OF_ENDS = statement(
  'read-workflows-of-ends',
  `
    SELECT w.id, w.tenant, w.on_failure AS "onFailure", w.stopping, w.steps_left AS "stepsLeft", w.failed, w.held,
      o.id AS "outerStep", o.workflow AS "outerWorkflow"
    FROM unnest($1::uuid[]) u(id) JOIN punctual.workflows w ON ${byIndex('w.id', 'u.id')}
    -- The step that it is, unless that has started another one since.
    LEFT JOIN LATERAL (
      SELECT o.id, o.workflow FROM punctual.steps o WHERE o.id = w.outer_step AND o.inner_workflow = w.id LIMIT 1) o ON true`,
);

/** What is known of a step that waits for parents. */
export interface StepCounts {
  readonly id: string;
  readonly runIf: RunIf;
  readonly parents: number;
  readonly parentsLeft: number;
  readonly ok: number;
  readonly bad: number;
  /** Whether it was decided that it runs. */
  readonly released: boolean;
  readonly outcome: EndState | null;
  readonly delayMs: number;
  /** JSON. */
  readonly wait: string | null;
  /** Whether it starts a workflow. */
  readonly inner: boolean;
  readonly refers: boolean;
}

/** An edge from an end to a child; `n` is the number of the end, from one on. */
export interface ReadEdge {
  readonly n: number;
  /** The same object for all edges to one child. */
  readonly child: StepCounts;
}

/** Why the rest of a workflow is skipped. */
export type Stopping = 'failure' | 'cancel';

/** A step that has ended and needs more than its state to be counted. */
export interface ReadSource {
  readonly id: string;
  readonly bad: number;
  /** The workflow that the step has started, if it still runs. */
  readonly innerRunning: string | null;
}

/** A workflow some of whose steps have ended. */
export interface ReadWorkflow {
  readonly id: string;
  readonly tenant: string;
  readonly onFailure: FailurePolicy;
  readonly stopping: Stopping | null;
  readonly stepsLeft: number;
  readonly failed: number;
  readonly held: boolean;
  /** The step of another workflow that it is, and that workflow. */
  readonly outerStep: string | null;
  readonly outerWorkflow: string | null;
}

/** What is read about ends. */
export interface ReadPortion {
  /** In the order of the ends and, for each, of the children. */
  readonly edges: readonly ReadEdge[];
  readonly sources: readonly ReadSource[];
  /** A workflow that was removed is missing. */
  readonly workflows: readonly ReadWorkflow[];
}

const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/** Reads up to `limit` edges of the ends, the ends' workflows, and those of their steps that are special. */
export async function readPortion(
  db: Queryable,
  ends: readonly PendingEnd[],
  limit: number,
): Promise<ReadPortion> {
  const jobs = binaryArray(
    'uuid',
    ends.map(({ job }) => job),
  );
  const places = binaryArray(
    'uuid',
    ends.map(({ place }) => place ?? BEFORE_ALL),
  );
  const ids = [...new Set(ends.map(({ workflow }) => workflow))];
  // A step that succeeded counts as ok whatever its parents were, and the workflow that it may have started has ended.
  const special = ends.filter(({ state }) => state !== 'succeeded').map(({ job }) => job);
  const [children, sources, workflows] = await Promise.all([
    run<StepCounts & { readonly ends: string } & Record<string, unknown>>(db, READ_EDGES, [
      jobs,
      places,
      limit,
    ]),
    special.length === 0
      ? []
      : run<ReadSource & Record<string, unknown>>(db, READ_SOURCES, [binaryArray('uuid', special)]),
    run<ReadWorkflow & Record<string, unknown>>(db, READ_WORKFLOWS_OF_ENDS, [ids]),
  ]);
  const edges = children.flatMap((child) =>
    String(child.ends)
      .split(' ')
      .map((n) => ({ n: Number(n), child })),
  );
  edges.sort((a, b) => a.n - b.n || (a.child.id < b.child.id ? -1 : 1));
  return { edges, sources, workflows };
}

/** What is written about a step; null keeps what is there. */
export interface StepChange {
  readonly id: string;
  readonly parentsLeft: number | null;
  readonly ok: number | null;
  readonly bad: number | null;
  readonly released: boolean | null;
  readonly outcome: EndState | null;
  readonly finishedAt: number | null;
  /** When it has waited long enough. */
  readonly wakeAt: number | null;
  /** Whether its job is blocked only because the workflow is on hold. */
  readonly parked: boolean | null;
}

/** A step whose job may run; its job is due no earlier than `runAt`. */
export interface ReleasedStep {
  readonly id: string;
  readonly runAt: number;
  /** JSON text; null keeps that of the submission. */
  readonly payload: string | null;
  /** Whether it stays blocked, because its workflow is on hold. */
  readonly parked: boolean;
}

/** A step whose job ends without having run. */
export interface EndedUnrun {
  readonly id: string;
  readonly state: EndState;
  /** JSON text. */
  readonly error: string | null;
  /** JSON text. */
  readonly result: string | null;
}

/** What a portion means for a workflow. */
export interface WorkflowChange {
  readonly id: string;
  readonly stepsEnded: number;
  readonly stepsFailed: number;
  /** Set if it stops from now on. */
  readonly stopping: Stopping | null;
}

/** Everything that one statement writes. */
export interface Portion {
  /** Ends that are counted completely. */
  readonly counted: readonly string[];
  /** An end that was passed on to some of its children. */
  readonly partly: { readonly job: string; readonly place: string } | null;
  readonly steps: readonly StepChange[];
  readonly released: readonly ReleasedStep[];
  readonly ended: readonly EndedUnrun[];
  readonly workflows: readonly WorkflowChange[];
}

const IF_OWN = 'EXISTS (SELECT 1 FROM own)';
/** When a released job is due: never before its release. */
const DUE = 'greatest(l.run_at, u.run_at)';
/** Whether it waits in `later`: on hold by itself or with its workflow, or due far ahead. */
const STAYS = `(l.held OR u.parked OR ${DUE} > $9::bigint)`;
const RELEASED =
  'unnest($17::uuid[], $18::bigint[], $19::json[], $29::boolean[]) u(id, run_at, payload, parked)';

/** What released jobs have in common: those of a wide graph mostly all of it, so that it is told once for many ids. */
const ALIKE = ['tenant', 'queue', 'needs', 'lane', 'rank', 'runAt', 'startBefore', 'key', 'fence', 'sizeKib']
  .map((name) => `l."${name}"`)
  .join(', ');

/** Released jobs that differ in nothing but their ids. */
interface AlikeJobs extends Omit<Waiting, 'id' | 'row'> {
  readonly ids: string;
}

/** Written out like the counts of steps: there may be thousands. */
function jobsOf(groups: readonly AlikeJobs[]): Waiting[] {
  const jobs: Waiting[] = [];
  for (const { ids, tenant, queue, needs, lane, rank, runAt, startBefore, key, fence, sizeKib } of groups) {
    for (const id of ids.split(' '))
      jobs.push({ id, tenant, queue, needs, lane, rank, runAt, startBefore, key, fence, sizeKib });
  }
  return jobs;
}

/**
 * The ends are locked first, and everything else happens only if all of them are still there: an end that somebody has
 * counted already must not be counted again. Jobs are moved as the rows of `later` that are deleted: one that was
 * cancelled or has expired meanwhile is left to its own end. Nothing here joins one part to another.
 */
const APPLY_PORTION = leaderStatement(
  'apply-portion',
  `locked AS MATERIALIZED (
    SELECT o.job FROM punctual.outbox o WHERE o.job = ANY($4::uuid[] || $5::uuid[]) AND ${WHILE_TERM_LASTS} FOR UPDATE
  ), own AS MATERIALIZED (
    SELECT 1 AS yes
    WHERE (SELECT count(*) FROM locked) = cardinality($4::uuid[] || $5::uuid[]) AND ${WHILE_TERM_LASTS}
  ), counted_out AS (
    DELETE FROM punctual.outbox o WHERE o.job = ANY($4::uuid[]) AND ${IF_OWN}
  ), passed_on AS (
    UPDATE punctual.outbox o SET place = $6::uuid WHERE o.job = ANY($5::uuid[]) AND ${IF_OWN}
  ), changed AS (
    UPDATE punctual.steps s SET
      parents_left = coalesce(u.parents_left, s.parents_left), ok = coalesce(u.ok, s.ok), bad = coalesce(u.bad, s.bad),
      released = coalesce(u.released, s.released), outcome = coalesce(u.outcome, s.outcome),
      finished_at = coalesce(u.finished_at, s.finished_at),
      wake_at = CASE WHEN u.outcome IS NOT NULL THEN NULL WHEN u.released THEN u.wake_at ELSE s.wake_at END,
      parked = coalesce(u.parked, s.parked)
    FROM unnest($10::uuid[], $11::int[], $12::int[], $13::int[], $14::boolean[], $15::text[], $16::bigint[],
        $28::bigint[], $30::boolean[]) u(id, parents_left, ok, bad, released, outcome, finished_at, wake_at, parked)
    WHERE ${byIndex('s.id', 'u.id')} AND ${IF_OWN}
  ), advanced AS (
    UPDATE punctual.workflows w SET
      steps_left = w.steps_left - u.ended, failed = w.failed + u.failed,
      stopping = coalesce(w.stopping, u.stopping), swept = w.swept AND u.stopping IS NULL,
      state = CASE WHEN w.steps_left > u.ended THEN w.state WHEN w.stopping = 'cancel' THEN 'cancelled'
        WHEN w.failed + u.failed > 0 THEN 'failed' ELSE 'succeeded' END,
      held = w.held AND w.steps_left > u.ended,
      ended_at = CASE WHEN w.steps_left > u.ended THEN w.ended_at ELSE $7::bigint END
    FROM unnest($20::uuid[], $21::int[], $22::int[], $23::text[]) u(id, ended, failed, stopping)
    WHERE ${byIndex('w.id', 'u.id')} AND ${IF_OWN}
    RETURNING w.id, w.tenant, w.name, w.state, w.created_at, w.failed, w.ended_at IS NOT NULL AS is_over
  ), postponed AS (
    UPDATE punctual.later l SET
      blocked = u.parked, run_at = ${DUE},
      admit_at = CASE WHEN u.parked THEN l.admit_at ELSE greatest(${DUE} - $8::bigint, $7::bigint) END,
      payload = coalesce(u.payload, l.payload),
      size_kib = coalesce(${newSize('u.payload', 'l.target')}, l.size_kib)
    FROM ${RELEASED}
    WHERE ${byIndex('l.id', 'u.id')} AND l.blocked AND ${STAYS} AND ${IF_OWN}
    RETURNING l.id
  ), freed AS (
    DELETE FROM punctual.later l USING ${RELEASED}
    WHERE ${byIndex('l.id', 'u.id')} AND l.blocked AND NOT ${STAYS} AND ${IF_OWN}
    RETURNING l.*, ${DUE} AS new_run_at, u.payload AS new_payload
  ), live AS (
    ${insertMoved({
      from: 'later',
      to: 'jobs',
      rows: 'freed',
      set: {
        run_at: 'm.new_run_at',
        payload: 'coalesce(m.new_payload, m.payload)',
        size_kib: `coalesce(${newSize('m.new_payload', 'm.target')}, m.size_kib)`,
        edited: 'true',
      },
    })}
    RETURNING ${selectWaiting('jobs', 'jobs.size_kib')}
  ), gone AS (
    DELETE FROM punctual.later l
    USING unnest($24::uuid[], $25::text[], $26::json[], $27::json[]) u(id, ended_as, ended_why, ended_with)
    WHERE ${byIndex('l.id', 'u.id')} AND l.blocked AND ${IF_OWN}
    RETURNING l.*, u.ended_as, u.ended_why, u.ended_with
  ), ${endParts({
    from: 'later',
    rows: 'gone',
    at: '$7::bigint',
    state: 'm.ended_as',
    set: { error: 'm.ended_why', result: 'm.ended_with' },
    skips: true,
  })}, ended_workflows AS (
    INSERT INTO punctual.tallies (at, tenant, workflows_succeeded, workflows_failed, workflows_cancelled)
    SELECT $7::bigint, tenant, count(*) FILTER (WHERE state = 'succeeded'), count(*) FILTER (WHERE state = 'failed'),
      count(*) FILTER (WHERE state = 'cancelled')
    FROM advanced WHERE is_over GROUP BY tenant
  ), answer AS (
    SELECT EXISTS (SELECT 1 FROM own) AS own,
      (SELECT json_agg(g) FROM (
        SELECT string_agg(l.id::text, ' ') AS ids, ${ALIKE} FROM live l GROUP BY ${ALIKE}) g) AS live,
      (SELECT count(*) FROM postponed) AS postponed,
      ${ENDED_STEPS} AS steps,
      (SELECT json_agg(json_build_object('id', a.id, 'tenant', a.tenant, 'name', a.name, 'state', a.state,
        'createdAt', a.created_at, 'failed', a.failed)) FROM advanced a WHERE a.is_over) AS over
  )`,
);

/** A workflow that has ended. */
export interface EndedWorkflow {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly state: WorkflowEnd;
  readonly createdAt: number;
  readonly failed: number;
}

/** What a statement has done. */
export interface Applied {
  /** False if an end was counted before; then nothing was done. */
  readonly isOwn: boolean;
  /** Jobs that were moved to the live table. */
  readonly live: readonly Waiting[];
  /** How many released jobs wait in `later` for their time or on hold. */
  readonly postponed: number;
  /** Steps that ended without having run. */
  readonly steps: readonly EndedStep[];
  readonly over: readonly EndedWorkflow[];
}

/** The change of a step that changes nothing. */
export const NO_CHANGE: Omit<StepChange, 'id'> = {
  ...{
    parentsLeft: null,
    ok: null,
    bad: null,
    released: null,
    outcome: null,
    finishedAt: null,
    wakeAt: null,
    parked: null,
  },
};

/** The parameters of the statement; exported for the test that runs every leader statement. */
export function portionValues(portion: Portion, now: number, laterThreshold: number): unknown[] {
  const { counted, partly, steps, released, ended, workflows } = portion;
  const ordered = [...steps].sort((a, b) => (a.id < b.id ? -1 : 1));
  return [
    ...[binaryArray('uuid', counted), partly ? [partly.job] : [], partly?.place ?? null],
    ...[now, Math.floor((laterThreshold * 2) / 3), now + laterThreshold],
    binaryArray(
      'uuid',
      ordered.map(({ id }) => id),
    ),
    binaryArray(
      'int',
      ordered.map(({ parentsLeft }) => parentsLeft),
    ),
    binaryArray(
      'int',
      ordered.map(({ ok }) => ok),
    ),
    binaryArray(
      'int',
      ordered.map(({ bad }) => bad),
    ),
    binaryArray(
      'boolean',
      ordered.map(({ released }) => released),
    ),
    textArray(ordered.map(({ outcome }) => outcome)),
    binaryArray(
      'bigint',
      ordered.map(({ finishedAt }) => finishedAt),
    ),
    binaryArray(
      'uuid',
      released.map(({ id }) => id),
    ),
    binaryArray(
      'bigint',
      released.map(({ runAt }) => runAt),
    ),
    textArray(released.map(({ payload }) => payload)),
    workflows.map(({ id }) => id),
    workflows.map(({ stepsEnded }) => stepsEnded),
    workflows.map(({ stepsFailed }) => stepsFailed),
    workflows.map(({ stopping }) => stopping),
    ended.map(({ id }) => id),
    ended.map(({ state }) => state),
    ended.map(({ error }) => error),
    ended.map(({ result }) => result),
    binaryArray(
      'bigint',
      ordered.map(({ wakeAt }) => wakeAt),
    ),
    binaryArray(
      'boolean',
      released.map(({ parked }) => parked),
    ),
    binaryArray(
      'boolean',
      ordered.map(({ parked }) => parked),
    ),
  ];
}

/** Writes a portion at the moment `now`. Jobs that are due further ahead than the threshold stay in `later`. */
export async function applyPortion(
  db: Queryable,
  term: TermKey,
  portion: Portion,
  now: number,
  laterThreshold: number,
): Promise<Applied> {
  interface Answer extends Record<string, unknown> {
    readonly own: boolean;
    readonly live: string | null;
    readonly postponed: number;
    readonly steps: string | null;
    readonly over: string | null;
  }
  const values = portionValues(portion, now, laterThreshold);
  const [answer] = await runAsLeader<Answer>(db, term, APPLY_PORTION, values);
  const { own = false, live = null, postponed = 0, steps: left = null, over = null } = answer ?? {};
  return {
    isOwn: own,
    live: live === null ? [] : jobsOf(JSON.parse(live) as AlikeJobs[]),
    postponed,
    steps: endedSteps(left, now),
    over: over === null ? [] : (JSON.parse(over) as EndedWorkflow[]),
  };
}
