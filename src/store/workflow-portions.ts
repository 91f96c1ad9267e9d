import type { EndState } from '../core/job.js';
import type { FailurePolicy, RunIf, WorkflowEnd } from '../core/workflow.js';
import { binaryArray } from './array-bytes.js';
import { byIndex, inClaimOrder } from './batch-statement.js';
import { type Column, Columns } from './columns.js';
import { isRefusedByItself, type Queryable, run, statement } from './database.js';
import { ENDED_STEPS, type EndedStep, endedSteps, endParts } from './ended-jobs.js';
import { column, insertedColumns, insertMoved, select, typeOf } from './job-columns.js';
import type { StoredDefinition } from './job-row.js';
import { leaderStatement, runAsLeader, type TermKey, WHILE_TERM_LASTS } from './leader-statement.js';
import { newSize } from './place-jobs.js';
import type { Waiting } from './read-backlog.js';
import { SortedColumns } from './sorted-columns.js';

/**
 * Counting the ends of steps. The executor reads a portion, decides about it in memory, and writes it in one statement.
 * Nobody else writes these rows, and the statement is fenced by the term, so what was read holds until it is written.
 */

/** A step that has ended and whose end was passed on up to `place`. */
export interface PendingEnd extends EndedStep {
  readonly place: string | null;
  /** Whether it filled a portion alone, and so has about as many edges left as a statement takes. */
  readonly isLong?: boolean;
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

/** What is read of children, but for their ids. */
const COUNTS = `s.run_if AS "runIf", s.parents, s.parents_left AS "parentsLeft", s.ok, s.bad, s.released, s.outcome,
      s.delay_ms AS "delayMs", s.wait::text AS wait, s.inner_graph IS NOT NULL AS inner, s.refers`;

const ENDS = new SortedColumns<NumberedEnd>([
  { name: 'n', type: 'int', of: (end) => end.n },
  { name: 'place', type: 'uuid', of: (end) => end.place },
]);
const SENT = ENDS.inSql(2);
/** The children of end `p` beyond its place, in the order of their ids, no more than $1: those that were submitted with it. */
const SUBMITTED = `p.child_ids[width_bucket(p.passed, p.child_ids) + 1:width_bucket(p.passed, p.child_ids) + $1]`;
/**
 * Those that were added later. Rows are compared as pairs, which only the primary key can find: while the table is empty, as it
 * mostly is, the planner would take the index of the children, and keep that plan when there are many.
 */
const ADDED = `ARRAY(
              SELECT e.child FROM punctual.edges e
              WHERE (e.parent, e.child) > (p.id, p.passed) AND e.parent <= p.id ORDER BY e.parent, e.child LIMIT $1)`;
const CHILDREN = `CASE WHEN p.added = '{}' THEN coalesce(${SUBMITTED}, '{}')
            ELSE ARRAY(SELECT b.id FROM unnest(${SUBMITTED} || p.added) b(id) ORDER BY b.id LIMIT $1) END`;

/**
 * The edges of the first ends, until there are $1 of them. Ends with the same children are one row, and so are children that
 * differ in nothing but their ids: a wide graph has thousands of ends with one child, and one end with thousands of children.
 * `OFFSET 0` keeps the planner from computing a value once for every place where it is named.
 */
const READ_EDGES = statement(
  'read-edges',
  `
    SELECT string_agg(s.id::text, ' ') AS ids, g.ends, ${COUNTS}
    FROM (
      SELECT string_agg(f.n::text, ' ') AS ends, f.children
      FROM (
        SELECT n, children, sum(cardinality(children)) OVER (ORDER BY n ROWS UNBOUNDED PRECEDING) - cardinality(children) AS before
        FROM (
          SELECT p.n, ${CHILDREN} AS children
          FROM (
            SELECT p.*, ${ADDED} AS added
            FROM (
              SELECT p.id, p.child_ids, ${SENT.of('n', 'p.id')} AS n, ${SENT.of('place', 'p.id')} AS passed
              FROM punctual.steps p WHERE p.id = ANY(${SENT.ids}) OFFSET 0) p OFFSET 0) p OFFSET 0) c) f
      WHERE f.before < $1
      GROUP BY f.children) g
    JOIN punctual.steps s ON s.id = ANY(g.children)
    GROUP BY g.ends, s.run_if, s.parents, s.parents_left, s.ok, s.bad, s.released, s.outcome, s.delay_ms, s.wait::text,
      s.inner_graph IS NOT NULL, s.refers`,
);

/** An end with its number, from one on, and the child up to which it was passed on. */
interface NumberedEnd {
  readonly id: string;
  readonly n: number;
  readonly place: string;
}

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
  const numbered = ends.map(
    ({ job, place }, i): NumberedEnd => ({ id: job, n: i + 1, place: place ?? BEFORE_ALL }),
  );
  const ids = [...new Set(ends.map(({ workflow }) => workflow))];
  // A step that succeeded counts as ok whatever its parents were, and the workflow that it may have started has ended.
  const special = ends.filter(({ state }) => state !== 'succeeded').map(({ job }) => job);
  const [groups, sources, workflows] = await Promise.all([
    run<AlikeChildren & Record<string, unknown>>(db, READ_EDGES, [limit, ...ENDS.parameters(numbered)]),
    special.length === 0
      ? []
      : run<ReadSource & Record<string, unknown>>(db, READ_SOURCES, [binaryArray('uuid', special)]),
    run<ReadWorkflow & Record<string, unknown>>(db, READ_WORKFLOWS_OF_ENDS, [ids]),
  ]);
  return { edges: edgesOf(groups, limit), sources, workflows };
}

/** Children that differ in nothing but their ids. */
interface AlikeChildren extends Omit<StepCounts, 'id'> {
  readonly ids: string;
  /** The numbers of the ends that each of them waits for. */
  readonly ends: string;
}

/** The first edges in the order of the ends and, for each, of the children. Written out: there may be thousands. */
function edgesOf(groups: readonly AlikeChildren[], limit: number): ReadEdge[] {
  const edges: ReadEdge[] = [];
  for (const group of groups) {
    const { runIf, parents, parentsLeft, ok, bad, released, outcome, delayMs, wait, inner, refers } = group;
    const ends = String(group.ends).split(' ').map(Number);
    for (const id of String(group.ids).split(' ')) {
      // biome-ignore format: one line.
      const child = { id, runIf, parents, parentsLeft, ok, bad, released, outcome, delayMs, wait, inner, refers };
      for (const n of ends) edges.push({ n, child });
    }
  }
  edges.sort((a, b) => a.n - b.n || (a.child.id < b.child.id ? -1 : 1));
  return edges.length > limit ? edges.slice(0, limit) : edges;
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

/** A step's changes. A flag is a number, because null keeps what is there. */
const CHANGES: readonly Column<StepChange>[] = [
  column('id', (step) => step.id),
  { name: 'parents_left', type: 'int', of: (step) => step.parentsLeft },
  { name: 'ok', type: 'int', of: (step) => step.ok },
  { name: 'bad', type: 'int', of: (step) => step.bad },
  { name: 'released', type: 'boolean', of: (step) => step.released },
  { name: 'outcome', type: 'text', of: (step) => step.outcome },
  { name: 'finished_at', type: 'bigint', of: (step) => step.finishedAt },
  { name: 'wake_at', type: 'bigint', of: (step) => step.wakeAt },
  { name: 'parked', type: 'boolean', of: (step) => step.parked },
];
const CHANGE_COLUMNS = new Columns<StepChange>(CHANGES);

/** The assignments of such a change, whose values are given by the names of the columns. */
function assignments(of: (name: string) => string): string {
  const kept = ['parents_left', 'ok', 'bad', 'released', 'outcome', 'finished_at', 'parked'];
  return `${kept.map((name) => `${name} = coalesce(${of(name)}, s.${name})`).join(', ')},
      wake_at = CASE WHEN ${of('outcome')} IS NOT NULL THEN NULL WHEN ${of('released')} THEN ${of('wake_at')} ELSE s.wake_at END`;
}

/** Steps that change in the same way, of which there are mostly many, and the others. */
interface SplitChanges {
  readonly alike: readonly StepChange[];
  readonly others: readonly StepChange[];
}

/** Ways of changing that are told apart; steps beyond that are among the others. */
const MOST_WAYS = 8;

/**
 * The largest group of steps that change in the same way, in the order of their ids. A wide graph is little else: its
 * children are counted, or its ends noted, all in one way, which needs no array but that of the ids, and one scan of the index.
 */
export function splitChanges(steps: readonly StepChange[]): SplitChanges {
  const groups: StepChange[][] = [];
  const rest: StepChange[] = [];
  let last: StepChange[] | undefined;
  for (const step of steps) {
    if (!last || !isAlike(last[0]!, step)) last = groups.find(([first]) => isAlike(first!, step));
    if (last) last.push(step);
    else if (groups.length < MOST_WAYS) {
      last = [step];
      groups.push(last);
    } else rest.push(step);
  }
  let alike: readonly StepChange[] = [];
  for (const group of groups) if (group.length > alike.length) alike = group;
  const others = [...groups.flatMap((group) => (group === alike ? [] : group)), ...rest];
  return { alike: inClaimOrder(alike), others: inClaimOrder(others) };
}

/** Whether two steps change in the same way. */
function isAlike(a: StepChange, b: StepChange): boolean {
  return (
    a.parentsLeft === b.parentsLeft &&
    a.ok === b.ok &&
    a.bad === b.bad &&
    a.released === b.released &&
    a.outcome === b.outcome &&
    a.finishedAt === b.finishedAt &&
    a.wakeAt === b.wakeAt &&
    a.parked === b.parked
  );
}

const RELEASED_COLUMNS = new SortedColumns<ReleasedStep>([
  { name: 'run_at', type: 'bigint', of: (step) => step.runAt },
  { name: 'payload', type: 'json', of: (step) => step.payload },
  { name: 'parked', type: 'boolean', of: (step) => step.parked },
]);

// The parameters: what is counted, the time, then the workflows, jobs that end unrun, jobs that run, and steps.
const COUNTED = '$4::uuid[]';
const PARTLY = '$5::uuid[]';
const NOW = '$7::bigint';
const RELEASED = RELEASED_COLUMNS.inSql(18);
/** Three columns, of which the JSON one takes four parameters. */
const ALIKE_FROM = 18 + 1 + 2 + 4 + 2;
const ALIKE = new Map(CHANGES.map(({ name, type }, i) => [name, `$${ALIKE_FROM + i}::${type}`]));
const ALIKE_IDS = `$${ALIKE_FROM}::uuid[]`;
const OTHERS = CHANGE_COLUMNS.inSql(ALIKE_FROM + CHANGES.length);

const IF_OWN = 'EXISTS (SELECT 1 FROM own)';
/** When a released job is due: never before its release. */
const DUE = `greatest(l.run_at, ${RELEASED.of('run_at', 'l.id')})`;
const PARKED = RELEASED.of('parked', 'l.id');
const PAYLOAD = RELEASED.of('payload', 'l.id');
/** Whether it stays blocked: on hold with its workflow, or because its artifact has not arrived. */
const BLOCKED = `(${PARKED} OR l.artifact IS NOT NULL)`;
/** Whether it waits in `later`: blocked, on hold by itself, or due far ahead. */
const STAYS = `(l.held OR ${BLOCKED} OR ${DUE} > $9::bigint)`;

/** What released jobs have in common: those of a wide graph mostly all of it, so that it is told once for many ids. */
const COMMON = [...insertedColumns('bulk'), 'attempts', 'size_kib', 'schedule', 'workflow'] as const;
const COMMON_TEXTS = COMMON.map((name) => (typeOf(name) === 'json' ? `l.${name}::text` : `l.${name}`));

/**
 * Released jobs that differ in nothing but their ids and payloads. They come with all that a claim needs, so that it need not
 * read them; but for large ones, and those that have run before.
 */
interface AlikeJobs extends StoredDefinition {
  readonly ids: string;
  readonly payloads: readonly string[] | null;
  readonly attempts: number;
  readonly size_kib: number;
  readonly schedule: string | null;
  readonly workflow: string;
}

/** Written out like the counts of steps: there may be thousands. */
function jobsOf(groups: readonly AlikeJobs[]): Waiting[] {
  const jobs: Waiting[] = [];
  for (const {
    ids,
    payloads,
    attempts,
    size_kib: sizeKib,
    schedule: from,
    workflow,
    ...definition
  } of groups) {
    const { tenant, queue, needs, lane, rank, run_at: runAt, start_before: startBefore } = definition;
    const { concurrency_key: key } = definition;
    const [schedule, fence] = [from ?? undefined, attempts + 1];
    for (const [i, id] of ids.split(' ').entries()) {
      const row = payloads && { id, payload: payloads[i]!, definition, schedule, workflow };
      // biome-ignore format: one line.
      jobs.push({ id, tenant, queue, needs, lane, rank, runAt, startBefore, key, fence, sizeKib, row });
    }
  }
  return jobs;
}

/**
 * The ends are deleted first, or changed, and the statement fails as a whole if one of them is gone: an end that somebody
 * has counted already must not be counted again. Jobs are moved as the rows of `later` that are deleted: one that was
 * cancelled or has expired meanwhile is left to its own end. Nothing here joins one part to another.
 */
const APPLY_PORTION = leaderStatement(
  'apply-portion',
  `counted_out AS (
    DELETE FROM punctual.outbox o WHERE o.job = ANY(${COUNTED}) AND ${WHILE_TERM_LASTS} RETURNING 1
  ), passed_on AS (
    UPDATE punctual.outbox o SET place = $6::uuid WHERE o.job = ANY(${PARTLY}) AND ${WHILE_TERM_LASTS} RETURNING 1
  ), own AS MATERIALIZED (
    -- Divides by zero unless all of them were there.
    SELECT 1 / (
      (SELECT count(*) FROM counted_out) + (SELECT count(*) FROM passed_on) = cardinality(${COUNTED} || ${PARTLY})
    )::int AS yes
    WHERE ${WHILE_TERM_LASTS}
  ), changed_alike AS (
    UPDATE punctual.steps s SET
      ${assignments((name) => ALIKE.get(name)!)}
    WHERE s.id = ANY(${ALIKE_IDS}) AND ${IF_OWN}
  ), changed AS (
    UPDATE punctual.steps s SET
      ${assignments(OTHERS.of)}
    FROM ${OTHERS.source}
    WHERE ${byIndex('s.id', 'u.id')} AND ${IF_OWN}
  ), advanced AS (
    UPDATE punctual.workflows w SET
      steps_left = w.steps_left - u.ended, failed = w.failed + u.failed,
      stopping = coalesce(w.stopping, u.stopping), swept = w.swept AND u.stopping IS NULL,
      state = CASE WHEN w.steps_left > u.ended THEN w.state WHEN w.stopping = 'cancel' THEN 'cancelled'
        WHEN w.failed + u.failed > 0 THEN 'failed' ELSE 'succeeded' END,
      held = w.held AND w.steps_left > u.ended,
      ended_at = CASE WHEN w.steps_left > u.ended THEN w.ended_at ELSE ${NOW} END
    FROM unnest($10::uuid[], $11::int[], $12::int[], $13::text[]) u(id, ended, failed, stopping)
    WHERE ${byIndex('w.id', 'u.id')} AND ${IF_OWN}
    RETURNING w.id, w.tenant, w.name, w.state, w.created_at, w.failed, w.ended_at IS NOT NULL AS is_over
  ), freed AS (
    DELETE FROM punctual.later l
    WHERE l.id = ANY(${RELEASED.ids}) AND l.blocked AND NOT ${STAYS} AND ${IF_OWN}
    RETURNING l.*, ${DUE} AS new_run_at, ${PAYLOAD} AS new_payload
  ), postponed AS (
    UPDATE punctual.later l SET
      blocked = ${BLOCKED}, run_at = ${DUE},
      admit_at = CASE WHEN ${BLOCKED} THEN l.admit_at ELSE greatest(${DUE} - $8::bigint, ${NOW}) END,
      payload = coalesce(${PAYLOAD}, l.payload),
      size_kib = coalesce(${newSize(PAYLOAD, 'l.target')}, l.size_kib)
    WHERE l.id = ANY(${RELEASED.ids}) AND l.blocked AND ${STAYS} AND ${IF_OWN}
      AND (SELECT count(*) FROM freed) < cardinality(${RELEASED.ids})
    RETURNING l.id
  ), live AS (
    ${insertMoved({
      from: 'later',
      to: 'jobs',
      rows: 'freed',
      set: {
        run_at: 'm.new_run_at',
        payload: 'coalesce(m.new_payload, m.payload)',
        size_kib: `coalesce(${newSize('m.new_payload', 'm.target')}, m.size_kib)`,
      },
    })}
    RETURNING ${select('jobs', ['id', 'payload', ...COMMON])}
  ), gone AS (
    DELETE FROM punctual.later l
    USING unnest($14::uuid[], $15::text[], $16::json[], $17::json[]) u(id, ended_as, ended_why, ended_with)
    WHERE ${byIndex('l.id', 'u.id')} AND l.blocked AND ${IF_OWN}
    RETURNING l.*, u.ended_as, u.ended_why, u.ended_with
  ), ${endParts({
    from: 'later',
    rows: 'gone',
    at: NOW,
    state: 'm.ended_as',
    set: { error: 'm.ended_why', result: 'm.ended_with' },
    skips: true,
  })}, ended_workflows AS (
    INSERT INTO punctual.tallies (at, tenant, workflows_succeeded, workflows_failed, workflows_cancelled)
    SELECT ${NOW}, tenant, count(*) FILTER (WHERE state = 'succeeded'), count(*) FILTER (WHERE state = 'failed'),
      count(*) FILTER (WHERE state = 'cancelled')
    FROM advanced WHERE is_over GROUP BY tenant
  ), answer AS (
    SELECT EXISTS (SELECT 1 FROM own) AS own,
      (SELECT json_agg(g) FROM (
        SELECT string_agg(l.id::text, ' ') AS ids,
          CASE WHEN l.attempts = 0 AND l.size_kib = 0 THEN json_agg(l.payload::text) END AS payloads,
          ${COMMON_TEXTS.map((text, i) => `${text} AS ${COMMON[i]}`).join(', ')}
        FROM live l GROUP BY ${COMMON_TEXTS.join(', ')}) g) AS live,
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
  const { alike, others } = splitChanges(steps);
  const [one = NO_CHANGE] = alike;
  return [
    ...[binaryArray('uuid', counted), partly ? [partly.job] : [], partly?.place ?? null],
    ...[now, Math.floor((laterThreshold * 2) / 3), now + laterThreshold],
    workflows.map(({ id }) => id),
    workflows.map(({ stepsEnded }) => stepsEnded),
    workflows.map(({ stepsFailed }) => stepsFailed),
    workflows.map(({ stopping }) => stopping),
    ended.map(({ id }) => id),
    ended.map(({ state }) => state),
    ended.map(({ error }) => error),
    ended.map(({ result }) => result),
    ...RELEASED_COLUMNS.parameters(released),
    binaryArray(
      'uuid',
      alike.map(({ id }) => id),
    ),
    ...[one.parentsLeft, one.ok, one.bad, one.released, one.outcome, one.finishedAt, one.wakeAt, one.parked],
    ...CHANGE_COLUMNS.parameters(others),
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
  const [answer] = await runAsLeader<Answer>(db, term, APPLY_PORTION, values).catch((error: unknown) => {
    if (isRefusedByItself(error)) return [];
    throw error;
  });
  const { own = false, live = null, postponed = 0, steps: left = null, over = null } = answer ?? {};
  return {
    isOwn: own,
    live: live === null ? [] : jobsOf(JSON.parse(live) as AlikeJobs[]),
    postponed,
    steps: endedSteps(left, now),
    over: over === null ? [] : (JSON.parse(over) as EndedWorkflow[]),
  };
}
