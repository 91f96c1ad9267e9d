import type { EndState } from '../core/job.js';
import type { Waits } from '../core/workflow/waiting.js';
import type { RunIf } from '../core/workflow.js';
import { stands } from '../host/test-switches.js';
import { binaryArray } from './array-bytes.js';
import { byIndex } from './batch-statement.js';
import { Columns, parametersOf } from './columns.js';
import { type Queryable, run, statement } from './database.js';
import { childrenOf } from './edges.js';
import { NEW_JOB_COLUMNS } from './job-row.js';
import {
  leaderStatement,
  RolledBackError,
  runAsLeader,
  type TermKey,
  WHILE_TERM_LASTS,
} from './leader-statement.js';
import { namesHold, namesTaken, type Resolved, StaleNamesError } from './names.js';
import { LATER_COLUMNS, type NewStep, type PlacedStep, STEP_COLUMNS } from './submit-workflow.js';

/**
 * Adding steps to a workflow that runs. The executor reads what the new steps are put beside, decides about them in memory,
 * and stores all of them or none, in one statement that does nothing unless the attempt that adds them still owns its job.
 */

const READ_ADDER = statement(
  'read-adder',
  `
    SELECT s.name, c.fence FROM punctual.steps s
    LEFT JOIN LATERAL (SELECT c.fence FROM punctual.claims c WHERE c.job = s.id LIMIT 1) c ON true
    WHERE s.id = $1::uuid AND s.workflow = $2::uuid AND s.tenant = $3::text`,
);

/** The step that adds others. */
export interface AdderRow extends Record<string, unknown> {
  readonly name: string;
  /** Of the attempt that runs; null if none does. */
  readonly fence: number | null;
}

/** The step of a job, if it is one of that workflow. */
export async function readAdder(
  db: Queryable,
  tenant: string,
  workflow: string,
  job: string,
): Promise<AdderRow | null> {
  const [row] = await run<AdderRow>(db, READ_ADDER, [job, workflow, tenant]);
  return row ?? null;
}

/** The figures of a workflow, for which only those of its steps are read that are workflows. */
const READ_FIGURES = statement(
  'read-figures-beside',
  `
    SELECT w.steps + (SELECT coalesce(sum(s.inner_steps), 0) FROM punctual.steps s WHERE s.workflow = w.id AND s.inner_steps > 0)
      AS steps, w.edges, w.last_place AS "lastPlace"
    FROM punctual.workflows w WHERE w.id = $1::uuid`,
);

/** The figures that an older program did not store, or that are to be counted anew because steps have left the workflow. */
const COUNT_FIGURES = statement(
  'count-figures-beside',
  `
    SELECT coalesce(sum(s.parents), 0) AS edges, coalesce(max(s.place), 0) AS "lastPlace"
    FROM punctual.steps s WHERE s.workflow = $1::uuid`,
);

/** One look-up for each name, however many steps the workflow has. */
const READ_BESIDE = statement(
  'read-steps-beside',
  `
    SELECT s.id, s.name, s.outcome, s.bad, s.added_by AS "addedBy" FROM unnest($2::text[]) u(name)
    CROSS JOIN LATERAL (
      SELECT s.* FROM punctual.steps s WHERE s.workflow = $1::uuid AND s.name = u.name LIMIT 1) s`,
);

/** A step that new ones name, or that has the name of one. */
export interface StepBeside extends Record<string, unknown> {
  readonly id: string;
  readonly name: string;
  readonly outcome: EndState | null;
  /** How many of its parents counted as bad. */
  readonly bad: number;
  /** The job that added it; null if it was submitted with the workflow. */
  readonly addedBy: string | null;
}

/** A workflow as far as it matters for what is added to it. */
export interface Figures {
  /** With those of the workflows that they start, as these were submitted. */
  readonly steps: number;
  readonly edges: number;
  readonly lastPlace: number;
}

/** The steps of a workflow that have these names. */
export function readStepsBeside(
  db: Queryable,
  workflow: string,
  names: readonly string[],
): Promise<StepBeside[]> {
  return run(db, READ_BESIDE, [workflow, names]);
}

/** The figures of a workflow; those that are not stored have to be counted. */
export async function readFigures(db: Queryable, workflow: string): Promise<Figures> {
  type Row = { readonly steps: number } & { readonly [name in 'edges' | 'lastPlace']: number | null };
  const [row] = await run<Row & Record<string, unknown>>(db, READ_FIGURES, [workflow]);
  if (!row) return { steps: 0, edges: 0, lastPlace: 0 };
  const { steps, edges, lastPlace } = row;
  if (edges !== null && lastPlace !== null) return { steps, edges, lastPlace };
  return { steps, ...(await countFigures(db, workflow)) };
}

/** Counts the edges of a workflow, and reads the last place of a step of it, from its steps. */
export async function countFigures(
  db: Queryable,
  workflow: string,
): Promise<Pick<Figures, 'edges' | 'lastPlace'>> {
  const [counted] = await run<{ edges: number; lastPlace: number }>(db, COUNT_FIGURES, [workflow]);
  return counted!;
}

/** Steps that wait for the given one and are not decided about. */
const READ_JOINERS = statement(
  'read-joiners',
  `
    SELECT s.id FROM (${childrenOf('$1::uuid')}) c JOIN punctual.steps s ON ${byIndex('s.id', 'c.id')}
    WHERE NOT s.released AND s.outcome IS NULL`,
);

/** The steps that wait for a step and are not decided about. */
export async function readJoiners(db: Queryable, step: string): Promise<string[]> {
  const rows = await run<{ id: string }>(db, READ_JOINERS, [step]);
  return rows.map(({ id }) => id).sort();
}

const FIND_BELOW = statement(
  'find-steps-below',
  `
    WITH RECURSIVE down AS (
      SELECT u.id FROM unnest($1::uuid[]) u(id)
      UNION
      SELECT c.id FROM down d CROSS JOIN LATERAL (${childrenOf('d.id')}) c
    )
    SELECT d.id FROM down d WHERE d.id = ANY($2::uuid[]) LIMIT 1`,
);

/** One of the wanted steps that is among the given ones or behind one of them; null if none is. */
export async function findBelow(
  db: Queryable,
  from: readonly string[],
  wanted: readonly string[],
): Promise<string | null> {
  const [row] = await run<{ id: string }>(db, FIND_BELOW, [from, wanted]);
  return row?.id ?? null;
}

/** A step that is to be added. */
export interface Draft {
  readonly id: string;
  readonly name: string;
  readonly runIf: RunIf;
  readonly delayMs: number;
  readonly wait: Waits | null;
  /** The workflow that it starts, if it runs no job. */
  readonly inner: { readonly steps: readonly object[] } | null;
  readonly refers: boolean;
  /** Names of steps, new ones and others. */
  readonly after: readonly string[];
  /** Its job as it is stored, by whether it is blocked. */
  make(blocked: boolean): Omit<NewStep, 'parents' | 'wakeAt'>;
}

/** A step to be added, with what its parents that have ended came to. */
export interface AddedStep extends PlacedStep {
  readonly parentsLeft: number;
  readonly ok: number;
  readonly bad: number;
  readonly released: boolean;
}

/** The columns of added steps; exported for the test that runs every leader statement. */
export const ADDED_COLUMNS = new Columns<AddedStep>([
  ...STEP_COLUMNS.inside((step: AddedStep) => step),
  { name: 'ok', type: 'int', of: (step) => step.ok },
  { name: 'bad', type: 'int', of: (step) => step.bad },
]);

const LIVE = NEW_JOB_COLUMNS.inSql(22);
const LATER = LATER_COLUMNS.inSql(LIVE.next);
const STEPS = ADDED_COLUMNS.inSql(LATER.next);
const IF_OWN = 'EXISTS (SELECT 1 FROM own)';
/** What the schedule of the workflow is, if one made it. */
const SCHEDULED = `(SELECT w.schedule FROM punctual.workflows w WHERE w.id = $6::uuid),
      (SELECT w.occurrence FROM punctual.workflows w WHERE w.id = $6::uuid)`;
/** Whether the claim is that of the attempt; any claim of the job when tests have removed this fence. */
const IS_CURRENT = stands('adding-fence') ? 'c.fence = $5::int' : '$5::int > 0';

/**
 * The claim is locked against its end: an attempt either has its steps added before it ends, or adds nothing. Its end then
 * finds the edges to those that wait for it as they are now, because the executor counts it afterwards.
 */
const ADD_STEPS = leaderStatement(
  'add-steps',
  `valid AS MATERIALIZED (SELECT ${namesHold(15)} AS named),
  mine AS MATERIALIZED (
    SELECT c.job FROM punctual.claims c WHERE c.job = $4::uuid AND ${IS_CURRENT} AND ${WHILE_TERM_LASTS}
    FOR KEY SHARE
  ), own AS MATERIALIZED (
    SELECT 1 AS yes WHERE EXISTS (SELECT 1 FROM mine) AND (SELECT named FROM valid) AND ${WHILE_TERM_LASTS}
  ), grown AS (
    UPDATE punctual.workflows w SET steps = w.steps + $8::int, steps_left = w.steps_left + $8::int, queues = $9::text[],
      tasks = $10::text[], edges = $20::int, last_place = $21::int,
      -- Those that could run at once are parked like the others.
      swept = w.swept AND NOT w.held
    WHERE w.id = $6::uuid AND ${IF_OWN}
  ), live AS (
    INSERT INTO punctual.jobs (${NEW_JOB_COLUMNS.names}, workflow, schedule, occurrence)
    SELECT ${LIVE.all}, $6::uuid, ${SCHEDULED} FROM ${LIVE.source} WHERE ${IF_OWN}
  ), later AS (
    INSERT INTO punctual.later (${LATER_COLUMNS.names}, workflow, schedule, occurrence)
    SELECT ${LATER.all}, $6::uuid, ${SCHEDULED} FROM ${LATER.source} WHERE ${IF_OWN}
  ), steps AS (
    INSERT INTO punctual.steps (${ADDED_COLUMNS.names}, workflow, tenant, added_by)
    SELECT ${STEPS.all}, $6::uuid, $7::text, $4::uuid FROM ${STEPS.source} WHERE ${IF_OWN}
  ), edges AS (
    INSERT INTO punctual.edges (parent, child)
    SELECT e.parent, e.child FROM unnest($11::uuid[], $12::uuid[]) e(parent, child) WHERE ${IF_OWN}
  ), joined AS (
    UPDATE punctual.steps s SET parents = s.parents + $8::int, parents_left = s.parents_left + $8::int
    WHERE s.id = ANY($13::uuid[]) AND ${IF_OWN}
  ), counted AS (
    INSERT INTO punctual.tallies (at, tenant, jobs_submitted)
    SELECT $14::bigint, $7::text, $8::int WHERE ${IF_OWN}
  ), answer AS (SELECT named, EXISTS (SELECT 1 FROM mine) AS own FROM valid)`,
);

/** Everything that is stored about steps that are added. */
export interface Addition {
  readonly workflow: string;
  readonly tenant: string;
  /** The attempt that adds them. */
  readonly job: string;
  readonly fence: number;
  readonly steps: readonly AddedStep[];
  /** By ids, with those to the steps that join. */
  readonly edges: { readonly parents: readonly string[]; readonly children: readonly string[] };
  /** How many edges the workflow has with these, and the last place of a step. */
  readonly edgesInAll: number;
  readonly lastPlace: number;
  /** Steps that wait for all of the new ones from now on. */
  readonly joiners: readonly string[];
  /** The queues and tasks of all steps of the workflow; null if there are too many. */
  readonly queues: readonly string[] | null;
  readonly tasks: readonly string[] | null;
}

/** The attempt that adds steps is not the one that runs; nothing was stored. */
export class NotOwnedError extends RolledBackError {
  constructor() {
    super('the attempt does not own its job any more');
    this.name = 'NotOwnedError';
  }
}

/** The parameters of the statement; exported for the test that runs every leader statement. */
export async function additionValues(
  { workflow, tenant, job, fence, steps, edges, edgesInAll, lastPlace, joiners, queues, tasks }: Addition,
  names: readonly Resolved[],
  now: number,
): Promise<unknown[]> {
  const live = steps.filter(({ admitAt }) => admitAt === null).map(({ row }) => row);
  const later = steps.filter(({ admitAt }) => admitAt !== null);
  return [
    ...[job, fence, workflow, tenant, steps.length, queues, tasks],
    ...[
      binaryArray('uuid', edges.parents),
      binaryArray('uuid', edges.children),
      joiners,
      now,
      ...namesTaken(names),
      edgesInAll,
      lastPlace,
    ],
    ...(await parametersOf(NEW_JOB_COLUMNS, live)),
    ...(await parametersOf(LATER_COLUMNS, later)),
    ...(await parametersOf(ADDED_COLUMNS, steps)),
  ];
}

/** Stores the steps; throws, with nothing done, if the attempt is over or the names are not what they were. */
export async function addSteps(
  db: Queryable,
  term: TermKey,
  addition: Addition,
  names: readonly Resolved[],
  now: number,
): Promise<void> {
  const values = await additionValues(addition, names, now);
  const [answer] = await runAsLeader<{ named: boolean; own: boolean }>(db, term, ADD_STEPS, values);
  if (!answer?.own) throw new NotOwnedError();
  if (!answer.named) throw new StaleNamesError();
}
