import { type FieldError, invalid, PunctualError, pointerStep } from '../core/errors.js';
import { checkGraph, type GraphStep } from '../core/workflow/graph.js';
import { eventOf } from '../core/workflow/waiting.js';
import { MOST_EDGES, MOST_STEPS } from '../core/workflow.js';
import {
  type Draft,
  type Figures,
  findBelow,
  NotOwnedError,
  readAdder,
  readFigures,
  readJoiners,
  readStepsBeside,
  type StepBeside,
} from '../store/add-steps.js';
import { hasGrown, readFamily } from '../store/inner-workflows.js';
import { readWorkflow, type WorkflowRow } from '../store/read-workflows.js';
import { findEvents } from '../store/step-inputs.js';
import type { Made } from '../store/submit-jobs.js';
import type { WorkflowExecutor } from './executor.js';
import { planAddition } from './plan-addition.js';
import type { WorkflowLeader } from './workflow-leader.js';

/** Steps that a running step adds to its workflow. */
export interface StepsToAdd {
  readonly tenant: string;
  readonly workflow: string;
  /** The attempt that adds them. */
  readonly by: { readonly jobId: string; readonly fence: number };
  /** Whether the steps that wait for the one that adds also wait for these. */
  readonly join: boolean;
  /** What was sent, by names. */
  readonly forms: Readonly<Record<string, GraphStep>>;
  readonly drafts: readonly (Draft & { readonly references: readonly string[] })[];
  /** The queues and tasks of the new steps and those of the workflow; null if there are too many. */
  reachOf(
    workflow: WorkflowRow,
    added: ReadonlySet<string>,
  ): {
    readonly queues: readonly string[] | null;
    readonly tasks: readonly string[] | null;
  };
  readonly made: Made;
}

/**
 * Adds steps to workflows. A step that the same job has added before, in this attempt or an earlier one, is taken as it is,
 * so that a request whose answer was lost can be repeated and a second attempt adds nothing twice.
 */
export class StepAdder {
  constructor(
    private readonly leader: WorkflowLeader,
    private readonly executor: WorkflowExecutor,
    /** Called when steps were added to a workflow on hold, which are to be parked. */
    private readonly onHeld: () => void,
  ) {}

  /** Answers whether any step is new. */
  add(addition: StepsToAdd): Promise<boolean> {
    return this.executor.alone(() => this.addAlone(addition));
  }

  private async addAlone(addition: StepsToAdd): Promise<boolean> {
    const { leader, executor } = this;
    const { tenant, workflow: id, by, made } = addition;
    // Parents that have ended are counted here, and so their ends must not be counted again afterwards.
    await executor.drain(id);
    const adder = await readAdder(leader.hot, tenant, id, by.jobId);
    if (!adder) throw new PunctualError('JOB_NOT_FOUND', `Job ${by.jobId} is no step of workflow ${id}.`);
    if (adder.fence !== by.fence) throw stale(by);
    const workflow = await readWorkflow(leader.hot, tenant, id);
    if (!workflow) throw new PunctualError('WORKFLOW_NOT_FOUND', `There is no workflow ${id}.`);
    const named = await readStepsBeside(leader.hot, id, namesIn(addition));
    const known = new Map(named.map((step) => [step.name, step]));
    const fresh = addition.drafts.filter(({ name }) => isFresh(name, known, by.jobId));
    if (fresh.length === 0) return false;
    if (workflow.stopping !== null || workflow.state !== 'running')
      throw new PunctualError(
        'WORKFLOW_STOPS',
        `The rest of workflow ${id} is being skipped; nothing was added.`,
      );
    const drafts = await inOrder(addition, fresh, known);
    const joiners = addition.join ? await readJoiners(leader.hot, by.jobId) : [];
    const figures = await readFigures(leader.hot, id);
    mustFit(figures, drafts, joiners.length);
    await this.refuseCircle(by.jobId, drafts, known, joiners);
    const now = leader.clock.now();
    const events = await this.eventsOf(id, drafts);
    const plan = planAddition(drafts, { known, joiners, lastPlace: figures.lastPlace, events }, now);
    const reach = addition.reachOf(workflow, new Set(drafts.map(({ name }) => name)));
    const family = hasGrown(workflow, reach) ? await readFamily(leader.hot, id) : [];
    const stored = {
      ...{ workflow: id, tenant, job: by.jobId, fence: by.fence, joiners },
      ...{ steps: plan.steps, edges: plan.edges },
      edgesInAll: figures.edges + plan.edges.parents.length,
      lastPlace: figures.lastPlace + plan.steps.length,
      ...reach,
    };
    await executor.addSteps(stored, family, plan.skipped, made, now).catch((error: unknown) => {
      throw error instanceof NotOwnedError ? stale(by) : error;
    });
    if (workflow.held) this.onHeld();
    return true;
  }

  /** A new step that waits for one behind those that wait for it would never run, nor would they. */
  private async refuseCircle(
    adder: string,
    drafts: readonly Draft[],
    known: ReadonlyMap<string, StepBeside>,
    joiners: readonly string[],
  ): Promise<void> {
    const named = new Set(drafts.flatMap(({ after }) => after.flatMap((name) => known.get(name)?.id ?? [])));
    named.delete(adder);
    if (joiners.length === 0 || named.size === 0) return;
    const below = await findBelow(this.leader.hot, joiners, [...named]);
    if (below === null) return;
    const { name } = [...known.values()].find((step) => step.id === below)!;
    for (const draft of drafts) {
      const place = draft.after.indexOf(name);
      if (place < 0) continue;
      const detail = `"${name}" waits for the step that adds this one, and so would wait for it; add it with "join": false`;
      throw invalid([{ pointer: `/jobs${pointerStep(draft.name)}/after/${place}`, detail }]);
    }
  }

  private async eventsOf(workflow: string, drafts: readonly Draft[]): Promise<Set<string>> {
    const names = drafts.flatMap(({ wait }) => (wait && eventOf(wait)) ?? []);
    if (names.length === 0) return new Set();
    const come = await findEvents(
      this.leader.hot,
      [...new Set(names)].map((name) => ({ workflow, name })),
    );
    return new Set(come.map(({ name }) => name));
  }
}

function namesIn({ drafts }: StepsToAdd): string[] {
  return [...new Set(drafts.flatMap(({ name, after, references }) => [name, ...after, ...references]))];
}

/** Whether a step is new; throws if another step has its name. */
function isFresh(name: string, known: ReadonlyMap<string, StepBeside>, job: string): boolean {
  const same = known.get(name);
  if (!same) return true;
  if (same.addedBy === job) return false;
  throw invalid([
    { pointer: `/jobs${pointerStep(name)}`, detail: 'the workflow has another step of this name' },
  ]);
}

/** The new steps, every one behind its parents; throws if they are no graph. */
async function inOrder<D extends Draft>(
  { forms }: StepsToAdd,
  fresh: readonly D[],
  known: ReadonlyMap<string, StepBeside>,
): Promise<D[]> {
  const drafts = new Map(fresh.map((draft) => [draft.name, draft]));
  const added = Object.fromEntries(fresh.map(({ name }) => [name, forms[name]!]));
  const around = new Map([...known].map(([name, { outcome }]) => [name, { hasEnded: outcome !== null }]));
  const { steps, errors } = await checkGraph(added, '/jobs', around);
  if (errors) throw invalid([...errors]);
  return steps.flatMap(({ name }) => drafts.get(name) ?? []);
}

function mustFit(figures: Figures, drafts: readonly Draft[], joiners: number): void {
  const errors: FieldError[] = [];
  const edges = drafts.reduce((sum, { after }) => sum + after.length + joiners, figures.edges);
  const steps = drafts.reduce((sum, { inner }) => sum + 1 + (inner?.steps.length ?? 0), figures.steps);
  if (steps > MOST_STEPS)
    errors.push({
      pointer: '/jobs',
      detail: `the workflow would have ${steps} steps; it may have ${MOST_STEPS}`,
    });
  if (edges > MOST_EDGES) {
    const why = joiners > 0 ? `, with those of the ${joiners} steps that wait for the one that adds` : '';
    const detail = `the workflow would have ${edges} entries of "after"${why}; it may have ${MOST_EDGES}`;
    errors.push({ pointer: '/jobs', detail });
  }
  if (errors.length > 0) throw invalid(errors);
}

function stale({ jobId, fence }: StepsToAdd['by']): PunctualError {
  const detail = `Fence ${fence} of job ${jobId} does not count any more; nothing was added.`;
  return new PunctualError('STALE_FENCE', detail);
}
