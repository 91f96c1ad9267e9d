import { PunctualError } from '../core/errors.js';
import { taskNamesOf } from '../core/submission.js';
import { allSteps, parseInner } from '../core/workflow/parse-workflow.js';
import { holdWorkflow } from '../store/hold-workflow.js';
import { readInnerGraph, tieInner } from '../store/inner-workflows.js';
import { leaderTransaction } from '../store/leader-statement.js';
import { Names, type Resolved, StaleNamesError } from '../store/names.js';
import { newWorkflow } from '../store/new-workflow.js';
import { toWaiting } from '../store/read-backlog.js';
import { readWorkflow, type WorkflowRow } from '../store/read-workflows.js';
import type { WokenStep } from '../store/step-inputs.js';
import { insertWorkflow, NEVER, type NewWorkflow } from '../store/submit-workflow.js';
import type { EndedUnrun } from '../store/workflow-portions.js';
import { endOfOuter, skipReason } from './plan-portion.js';
import type { WorkflowLeader } from './workflow-leader.js';

/** What the inner workflows need of the others. */
interface InnerParts {
  /** Runs what failed in a workflow again, which is on hold then if the one around it is. */
  readonly retry: (workflow: WorkflowRow, held: boolean) => Promise<void>;
  /** Called when so many jobs of steps are to be admitted later, and when the first of them is to have started by. */
  readonly onStored: (tenant: string, later: number, startBefore: number | null) => void;
}

/**
 * Starts the workflows that are steps of others, when those are released. A step that is to start one is a step that is
 * looked at now: the next leader looks at it, too, until it is tied to its workflow, in the transaction that stores that.
 * The step ends in the statement that ends its workflow.
 */
export class InnerWorkflows {
  private readonly names: Names;

  constructor(
    private readonly leader: WorkflowLeader,
    private readonly parts: InnerParts,
  ) {
    this.names = new Names(leader.hot, leader.config);
  }

  /** Starts the workflow of a step; answers how the step ends if it does so at once. To be called by those who are alone. */
  async start({ id, workflow, tenant }: WokenStep): Promise<EndedUnrun | null> {
    const { leader } = this;
    const outer = await readWorkflow(leader.hot, tenant, workflow);
    const step = await readInnerGraph(leader.hot, id);
    if (!outer || !step) return null;
    if (outer.stopping !== null) return { id, state: 'skipped', error: skipReason(true), result: null };
    try {
      const known = step.inner === null ? null : await readWorkflow(leader.hot, tenant, step.inner);
      // One that is being stopped has nobody to run for any more.
      const isWindingDown = known?.state === 'running' && known.stopping !== null;
      if (known && !isWindingDown) return await this.resume(id, known, outer.held);
      await this.store(id, outer, step.graph);
      return null;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      const { code, message } = error;
      return { id, state: 'failed', error: JSON.stringify({ code, message }), result: null };
    }
  }

  /** A step that runs again has what failed in its workflow run again; one that still runs is waited for. */
  private async resume(step: string, inner: WorkflowRow, held: boolean): Promise<EndedUnrun | null> {
    const { leader } = this;
    if (inner.state === 'succeeded') return endOfOuter(step, inner.id, inner.state);
    if (inner.state !== 'running') await this.parts.retry(inner, held);
    // If this is not done any more, the next look finds that the workflow runs.
    await leader.write(() => tieInner(leader.hot, leader.term, step, inner.id, inner.depth));
    return null;
  }

  private async store(step: string, outer: WorkflowRow, graph: string): Promise<void> {
    const { leader } = this;
    const { tenant, created_by: createdBy } = outer;
    const { jobs } = JSON.parse(graph) as { jobs: Record<string, unknown> };
    const tasks = await leader.tasks.find(tenant, () => taskNamesOf([...allSteps(jobs)]));
    const now = leader.clock.now();
    const depth = outer.depth + 1;
    const parsed = await parseInner(graph, { ...leader.config, now, tasks, depth });
    const named = parsed.steps.map(({ definition: { queue, needs } }) => ({ tenant, queue, needs }));
    const storeOnce = async (resolved: readonly Resolved[]): Promise<NewWorkflow> => {
      // Its jobs are told to the leader, which is here, and so may be of any age.
      const made = { names: resolved, at: NEVER, since: performance.now() };
      const form = { ...parsed, name: parsed.name ?? outer.name, key: null };
      const { laterThreshold } = leader.config;
      const workflow = await newWorkflow({ tenant, createdBy }, form, resolved, now, laterThreshold);
      await leader.write(() =>
        leaderTransaction(leader.hot, leader.term, async (db) => {
          await insertWorkflow(db, workflow, made, now);
          await tieInner(db, leader.term, step, workflow.id, depth);
          if (outer.held) await holdWorkflow(db, leader.term, tenant, workflow.id, true);
        }),
      );
      return workflow;
    };
    const resolved = await this.names.resolve(named, now);
    const workflow = await storeOnce(resolved).catch(async (error: unknown) => {
      if (!(error instanceof StaleNamesError)) throw error;
      this.names.forget(resolved);
      return storeOnce(await this.names.resolve(named, now));
    });
    await this.tell(workflow);
  }

  private async tell({ tenant, steps }: NewWorkflow): Promise<void> {
    const live = steps.filter(({ admitAt }) => admitAt === null);
    const waiting = live.map(({ row }) => toWaiting(row));
    await this.leader.admitNew(waiting);
    if (this.leader.events.isHeard) this.leader.events.submitted(waiting);
    const startBefore = steps.flatMap(({ row }) => row.definition.start_before ?? []);
    const first = startBefore.reduce((least, at) => Math.min(least, at), Number.POSITIVE_INFINITY);
    this.parts.onStored(tenant, steps.length - live.length, startBefore.length > 0 ? first : null);
  }
}

/** What the user's own request could have been refused with; anything else is tried again. */
function isRefusal(error: unknown): error is PunctualError {
  return error instanceof PunctualError && error.status < 500;
}
