import { type AuditAuthor, auditEntry } from '../core/audit.js';
import { invalid, PunctualError } from '../core/errors.js';
import type { EventOutcome } from '../core/workflow.js';
import type { Queryable } from '../store/database.js';
import { holdWorkflow } from '../store/hold-workflow.js';
import { dayBegin, oldestDay } from '../store/partitions.js';
import { type EdgeRow, readGraph, readWorkflow, type WorkflowRow } from '../store/read-workflows.js';
import { type GraphStepRow, readGraphSteps, reopenSteps } from '../store/reopen-steps.js';
import type { Requested } from '../store/requested.js';
import { findEvents } from '../store/step-inputs.js';
import { cancelWorkflow } from '../store/stop-workflow.js';
import { WorkflowExecutor } from './executor.js';
import { InnerWorkflows } from './inner-workflows.js';
import { type Again, eventsOf, planReopening, planRerun } from './plan-reopening.js';
import { StepAdder, type StepsToAdd } from './step-adder.js';
import { Sweeper } from './sweeper.js';
import type { CancelJob, WorkflowLeader } from './workflow-leader.js';

/** How steps of a workflow are run again. */
interface Reopened extends Requested<boolean> {
  readonly action: 'workflow.retry' | 'job.retry';
  /** Whether the workflow is on hold from then on; default as it was. */
  readonly held?: boolean;
}

/** A workflow all of whose ends are counted. */
interface CountedGraph {
  readonly steps: readonly GraphStepRow[];
  readonly edges: readonly EdgeRow[];
  readonly isStopping: boolean;
}

/** Everything that a leader does with workflows during one term. */
export class Workflows {
  readonly executor: WorkflowExecutor;
  private readonly sweeper: Sweeper;
  private readonly adder: StepAdder;

  constructor(
    private readonly leader: WorkflowLeader,
    cancelJob: CancelJob,
    /** Called when so many jobs of steps are to be admitted, and when the first is to have started by, if one is. */
    private readonly onReopened: (tenant: string, jobs: number, startBefore: number | null) => void,
    /** Resolves when the claims that are under way are made. */
    private readonly claimsMade: () => Promise<void>,
  ) {
    this.executor = new WorkflowExecutor(leader, () => this.sweeper.wake());
    this.sweeper = new Sweeper(leader, this.executor, cancelJob);
    this.adder = new StepAdder(leader, this.executor, () => this.sweeper.wake());
    const inner = new InnerWorkflows(leader, {
      retry: (workflow, held) => this.retryFailed(workflow, { held }),
      onStored: (startBefore) => {
        // Its jobs are counted where they are stored.
        this.onReopened('', 0, startBefore);
        this.executor.wake();
        // It is on hold if the workflow around it is.
        this.sweeper.wake();
      },
    });
    this.executor.startInner = (step) => inner.start(step);
  }

  start(): void {
    this.executor.start();
    this.sweeper.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.executor.stop(), this.sweeper.stop()]);
  }

  /** Adds steps that a running step has; answers whether any of them is new. */
  add(addition: StepsToAdd): Promise<boolean> {
    return this.adder.add(addition);
  }

  /** Skips what has not started and cancels what runs; the workflow ends when all of its steps have. */
  async cancel(tenant: string, id: string, { author, keep }: Requested<boolean> = {}): Promise<void> {
    const { leader } = this;
    await this.executor.alone(async () => {
      const workflow = await this.mustRead(tenant, id);
      if (workflow.state !== 'running') throw ended(workflow);
      const entry = author && this.entry(author, 'workflow.cancel', workflow, { stopping: 'cancel' });
      await leader.writeRequested(entry, keep, (db, term) => cancelWorkflow(db, term, tenant, id));
      if (leader.events.isHeard) leader.events.workflow('workflow.stopping', workflow, 'running', 'cancel');
    });
    this.sweeper.wake();
  }

  /** Lets no step start any more, until it is released. Running steps finish, and ends and waits still count. */
  async hold(tenant: string, id: string, requested: Requested<boolean> = {}): Promise<void> {
    await this.setHeld(tenant, id, true, requested);
    // A claim that began before the hold takes effect before it, too.
    await this.claimsMade();
  }

  /** Lets everything start that would have started meanwhile. */
  async release(tenant: string, id: string, requested: Requested<boolean> = {}): Promise<void> {
    await this.setHeld(tenant, id, false, requested);
  }

  private async setHeld(
    tenant: string,
    id: string,
    held: boolean,
    { author, keep }: Requested<boolean>,
  ): Promise<void> {
    await this.executor.alone(async () => {
      const workflow = await this.mustRead(tenant, id);
      if (workflow.state !== 'running') throw ended(workflow);
      const isOwn = workflow.held && !workflow.held_with_outer;
      if (held ? isOwn : !workflow.held) throw alreadySo(workflow);
      const action = held ? 'workflow.hold' : 'workflow.release';
      const entry = author && this.entry(author, action, workflow, { held });
      await this.leader.writeRequested(entry, keep, (db, term) => holdWorkflow(db, term, tenant, id, held));
      const { events } = this.leader;
      if (events.isHeard) events.workflow('workflow.changed', workflow, 'running', held ? 'hold' : 'release');
    });
    this.sweeper.wake();
  }

  /** Runs the steps again that failed or were cancelled, or a step and everything behind it. */
  async retry(
    tenant: string,
    id: string,
    from: string | undefined,
    { author, keep }: Requested<boolean> = {},
  ): Promise<void> {
    await this.executor.alone(async () => {
      const workflow = await this.mustRead(tenant, id);
      if (from === undefined) return this.retryFailed(workflow, { author, keep });
      await this.reopen(workflow, { author, keep, action: 'workflow.retry' }, ({ steps, edges }) => {
        const root = steps.find(({ name }) => name === from);
        if (!root) throw invalid([{ pointer: '/from', detail: `there is no step "${from}"` }]);
        const { below, removed, lost } = planRerun(root.id, steps, edges);
        const busy = steps.filter(
          (step) => step.outcome === null && (removed.has(step.id) || (below.has(step.id) && step.released)),
        );
        if (root.outcome === null || busy.length > 0)
          throw stillRuns(id, root.outcome === null ? [root] : busy);
        if (lost.length > 0) throw losesSteps(id, lost);
        return { chosen: new Set([root.id]), withDescendants: true, withSkipped: false, removed };
      });
    });
  }

  /** With `held`, the workflow is on hold from then on. To be called by those who are alone. */
  private retryFailed(
    workflow: WorkflowRow,
    requested: Requested<boolean> & { readonly held?: boolean },
  ): Promise<void> {
    return this.reopen(workflow, { ...requested, action: 'workflow.retry' }, ({ steps, isStopping }) => {
      const failed = steps.filter(({ outcome }) => outcome === 'failed' || outcome === 'cancelled');
      const chosen = new Set(failed.map((step) => step.id));
      return { chosen, withDescendants: false, withSkipped: isStopping };
    });
  }

  /** Runs one step again, which continues its workflow. */
  async retryStep(
    tenant: string,
    id: string,
    job: string,
    { author, keep }: Requested<void> = {},
  ): Promise<void> {
    await this.executor.alone(async () => {
      const workflow = await this.mustRead(tenant, id);
      const requested = { author, keep: keep && ((db: Queryable) => keep(db)), action: 'job.retry' } as const;
      await this.reopen(workflow, requested, ({ isStopping }) => ({
        ...{ chosen: new Set([job]), withDescendants: false, withSkipped: isStopping },
      }));
    });
  }

  private async reopen(
    found: WorkflowRow,
    { author, keep, action, held: isToHold = false }: Reopened,
    choose: (graph: CountedGraph) => Again & { readonly removed?: ReadonlySet<string> },
  ): Promise<void> {
    const { leader } = this;
    const { id, tenant } = found;
    if (await this.isTooOld(found)) throw tooOld(id);
    // An end that is not counted yet would be counted against the counters that are made here.
    await this.executor.drain(id);
    // What was counted may have stopped the workflow, or ended it, which takes it off hold.
    const workflow = await this.mustRead(tenant, id);
    const held = workflow.held || isToHold;
    const isStopping = workflow.stopping !== null;
    const [steps, edges] = [await readGraphSteps(leader.hot, id), await readGraph(leader.hot, tenant, id)];
    const now = leader.clock.now();
    const named = eventsOf(steps).map((name) => ({ workflow: id, name }));
    const come = named.length === 0 ? [] : await findEvents(leader.hot, named);
    const events = new Set(come.map(({ name }) => name));
    const { removed = new Set<string>(), ...again } = choose({ steps, edges, isStopping });
    const left = steps.filter((step) => !removed.has(step.id));
    const leftEdges = edges.filter(({ parent, child }) => !removed.has(parent) && !removed.has(child));
    const plan = planReopening(left, leftEdges, again, events, now, held);
    if (plan.reopened.length === 0) throw nothingToRetry(id);
    const once = [...plan.reopened, ...steps.filter((step) => removed.has(step.id))].filter(
      (step) => step.ranOnce,
    );
    if (once.length > 0) throw ranOnce(id, once);
    if (plan.reopened.some(({ hasHistory }) => !hasHistory)) throw tooOld(id);
    const changed = {
      state: 'running',
      run: workflow.run + 1,
      steps: plan.reopened.map(({ name }) => name).slice(0, 20),
    };
    const entry = author && this.entry(author, action, workflow, changed);
    const isDone = await leader.writeRequested(entry, keep, (db, term) =>
      reopenSteps(
        db,
        term,
        { workflow: id, tenant, ...plan, anew: again.withDescendants, held, removed: [...removed] },
        now,
      ),
    );
    if (!isDone) throw tooOld(id);
    if (leader.events.isHeard) leader.events.workflow('workflow.retried', workflow, 'running');
    this.onReopened(tenant, plan.reopened.length, null);
    this.executor.wake();
  }

  /**
   * Whether jobs of it may be gone: those of days that this leader is removing, or that were removed before. What it reads
   * holds while it is alone, because only whoever is alone begins to remove days. What is due to be removed counts as gone: a
   * leader before this one may have removed the first of several such days, with steps of workflows that ended in a later one.
   */
  private async isTooOld({ ended_at: endedAt }: WorkflowRow): Promise<boolean> {
    const { keptSince, hot, clock, config } = this.leader;
    if (endedAt === null) return false;
    const due = dayBegin(clock.now() - config.historyRetention);
    return endedAt < Math.max(keptSince, due, await oldestDay(hot));
  }

  /** Looks for steps that have waited long enough. */
  wakeSteps(): void {
    this.executor.wake();
  }

  /** Completes the steps that wait for an event; the first of a name counts. */
  async event(
    tenant: string,
    id: string,
    name: string,
    payload: string,
    { keep }: Requested<EventOutcome> = {},
  ): Promise<EventOutcome> {
    return this.executor.alone(async () => {
      const workflow = await this.mustRead(tenant, id);
      if (workflow.state !== 'running') throw ended(workflow);
      return this.executor.event({ workflow: id, name, payload }, tenant, keep);
    });
  }

  private entry(
    author: AuditAuthor,
    action: 'workflow.cancel' | 'workflow.hold' | 'workflow.release' | 'workflow.retry' | 'job.retry',
    { id: name, tenant, state, stopping, failed, held }: WorkflowRow,
    changed: object,
  ) {
    const before = { state, stopping, failed, held };
    const subject = { kind: 'workflow', name, tenant } as const;
    const views = { before, after: { ...before, ...changed } };
    return auditEntry(author, this.leader.clock.now(), action, subject, views);
  }

  private async mustRead(tenant: string, id: string): Promise<WorkflowRow> {
    const workflow = await readWorkflow(this.leader.hot, tenant, id);
    if (!workflow) throw notFound(id);
    return workflow;
  }
}

/** The error for a workflow that the tenant does not have. */
export function notFound(id: string): PunctualError {
  return new PunctualError('WORKFLOW_NOT_FOUND', `There is no workflow ${id}.`);
}

function ended({ id, state }: WorkflowRow): PunctualError {
  return new PunctualError('WORKFLOW_ENDED', `Workflow ${id} has already ended: ${state}.`);
}

function alreadySo({ id, held }: WorkflowRow): PunctualError {
  return held
    ? new PunctualError('WORKFLOW_HELD', `Workflow ${id} is on hold already.`)
    : new PunctualError('WORKFLOW_NOT_HELD', `Workflow ${id} is not on hold.`);
}

function nothingToRetry(id: string): PunctualError {
  return new PunctualError(
    'NOTHING_TO_RETRY',
    `No step of workflow ${id} has ended in a way that can be retried.`,
  );
}

function stillRuns(id: string, steps: readonly GraphStepRow[]): PunctualError {
  return new PunctualError('JOB_NOT_ENDED', `Steps of workflow ${id} have not ended: ${namesOf(steps)}.`);
}

function losesSteps(id: string, steps: readonly GraphStepRow[]): PunctualError {
  const detail = `Steps of workflow ${id} wait for steps that would be added anew, and were added by others: ${namesOf(steps)}.`;
  return new PunctualError('RERUN_LOSES_STEPS', detail);
}

function ranOnce(id: string, steps: readonly GraphStepRow[]): PunctualError {
  const detail = `Steps of workflow ${id} are at-most-once and have run: ${namesOf(steps)}. They are not run again.`;
  return new PunctualError('AT_MOST_ONCE', detail);
}

function tooOld(id: string): PunctualError {
  return new PunctualError(
    'WORKFLOW_ENDED',
    `Workflow ${id} cannot run again: jobs of its steps were deleted, or it is older than the history that is kept.`,
  );
}

/** The most names that an error lists. */
const MOST_NAMES = 10;

function namesOf(steps: readonly GraphStepRow[]): string {
  const names = steps.slice(0, MOST_NAMES).map(({ name }) => name);
  return `${names.join(', ')}${steps.length > MOST_NAMES ? ' …' : ''}`;
}
