import type { EndState } from '../core/job.js';
import { Loop, logFailure } from '../core/loop.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import { readWorkflow } from '../store/read-workflows.js';
import {
  cancelWorkflow,
  markSwept,
  readUnended,
  readUnswept,
  type UnendedStep,
  type UnsweptWorkflow,
} from '../store/stop-workflow.js';
import type { WorkflowExecutor } from './executor.js';
import { skipReason } from './plan-portion.js';
import type { CancelJob, WorkflowLeader } from './workflow-leader.js';

/** Steps of one statement. */
const PAGE = 500;
const WORKFLOWS = 100;
const EVERY_MS = 60_000;
/** When steps are looked at again that were just being claimed or changed. */
const SOON_MS = 20;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/**
 * Ends the steps of workflows that stop, page by page. Those that have not started are skipped, or cancelled with their
 * workflow; those that run, or have run and wait for another attempt, are cancelled or left alone, as the workflow says.
 */
export class Sweeper {
  private readonly loop: Loop;

  constructor(
    private readonly leader: WorkflowLeader,
    private readonly executor: WorkflowExecutor,
    private readonly cancelJob: CancelJob,
  ) {
    this.loop = new Loop({
      name: 'stopping workflows',
      everyMs: EVERY_MS,
      pass: () => this.runOnce(),
      onError: logFailure(leader.log, 'steps of a workflow that stops could not be ended'),
    });
  }

  start(): void {
    this.loop.start();
  }

  stop(): Promise<void> {
    return this.loop.stop();
  }

  wake(): void {
    this.loop.wake();
  }

  /** Answers with the pause until the next pass. */
  async runOnce(): Promise<number> {
    const { leader } = this;
    const found = await readUnswept(leader.hot, WORKFLOWS);
    let isDone = found.length < WORKFLOWS;
    for (const workflow of found) {
      if (leader.isOver) return EVERY_MS;
      const isSwept =
        (await this.sweep(workflow)) &&
        (await leader.write(() => markSwept(leader.hot, leader.term, workflow)));
      if (!isSwept) isDone = false;
    }
    return isDone ? EVERY_MS : SOON_MS;
  }

  /** Answers whether nothing is left to be done. */
  private async sweep(workflow: UnsweptWorkflow): Promise<boolean> {
    const { leader } = this;
    let isDone = true;
    for (let after = BEFORE_ALL; ; ) {
      // Alone, so that no portion that does not know yet that the workflow stops is under way, and no retry.
      const page = await this.whileItStops(workflow, async () => {
        const found = await readUnended(leader.hot, workflow.id, after, PAGE);
        const steps = await this.withoutInner(workflow, found);
        return {
          steps,
          last: found.at(-1)?.id,
          isLast: found.length < PAGE,
          hasEnded: await this.endWaiting(workflow, steps),
        };
      });
      if (page === null) return false;
      const { steps, last, isLast, hasEnded } = page;
      if (!hasEnded) isDone = false;
      if (!(await this.cancelRunning(workflow, steps))) isDone = false;
      if (isLast || leader.isOver) return isDone;
      after = last!;
    }
  }

  /**
   * The steps without those whose workflows run: these end when their workflows do, which are cancelled if what runs is.
   */
  private async withoutInner(
    workflow: UnsweptWorkflow,
    steps: readonly UnendedStep[],
  ): Promise<readonly UnendedStep[]> {
    const { leader } = this;
    const running = new Set<string>();
    for (const { id, inner, gone } of steps) {
      if (inner === null || gone) continue;
      const isRunning = cancelsRunning(workflow)
        ? await leader.write(() => cancelWorkflow(leader.hot, leader.term, workflow.tenant, inner))
        : (await readWorkflow(leader.hot, workflow.tenant, inner))?.state === 'running';
      if (isRunning) running.add(id);
    }
    if (running.size > 0 && cancelsRunning(workflow)) this.wake();
    return running.size === 0 ? steps : steps.filter(({ id }) => !running.has(id));
  }

  /** Runs something alone; answers null, with nothing done, if the workflow was cancelled or retried meanwhile. */
  private whileItStops<T>(
    { id, tenant, stopping, run }: UnsweptWorkflow,
    work: () => Promise<T>,
  ): Promise<T | null> {
    return this.executor.alone(async () => {
      const now = await readWorkflow(this.leader.hot, tenant, id);
      return now?.stopping === stopping && now.run === run ? work() : null;
    });
  }

  private async endWaiting(workflow: UnsweptWorkflow, steps: readonly UnendedStep[]): Promise<boolean> {
    const { leader } = this;
    const toEnd = steps.filter((step) => !step.claimed && endOf(workflow, step) !== null);
    const mine = toEnd.filter(({ id }) => !leader.running.has(id) && leader.tryTurn(id));
    if (mine.length === 0) return toEnd.length === 0;
    const now = leader.clock.now();
    const ended = new Set<string>();
    try {
      for (const place of ['live', 'later'] as const) {
        const ends = mine
          .filter(({ later }) => later === (place === 'later'))
          .map((step) => {
            const state = endOf(workflow, step)!;
            return { id: step.id, state, error: state === 'skipped' ? skipReason(true) : null };
          });
        if (ends.length === 0) continue;
        const gone = await leader.writeEnds(() => endWaitingJobs(leader.hot, leader.term, place, ends, now));
        for (const { id } of gone) ended.add(id);
      }
    } finally {
      for (const { id } of mine) leader.turns.release(id);
      // Also after a failure, because taking the turn removed the job from the backlog.
      await leader.follow(mine.map(({ id }) => id).filter((id) => !ended.has(id)));
    }
    return ended.size === toEnd.length;
  }

  private async cancelRunning(workflow: UnsweptWorkflow, steps: readonly UnendedStep[]): Promise<boolean> {
    if (!cancelsRunning(workflow)) return true;
    let isDone = true;
    for (const { id } of steps.filter(({ claimed }) => claimed)) {
      await this.whileItStops(workflow, () => this.cancelJob(workflow.tenant, id)).catch((error: unknown) => {
        // Mostly it has just ended; else the next pass tries again.
        this.leader.log.debug({ job: id, error }, 'a running step could not be cancelled');
        isDone = false;
      });
    }
    return isDone;
  }
}

function cancelsRunning({ stopping, running }: UnsweptWorkflow): boolean {
  return stopping === 'cancel' || running === 'cancel';
}

/** How a step that waits ends; null if it does not. */
function endOf(workflow: UnsweptWorkflow, { blocked, attempts, gone }: UnendedStep): EndState | null {
  if (gone) return null;
  if (blocked) return 'skipped';
  if ((attempts ?? 0) > 0) return cancelsRunning(workflow) ? 'cancelled' : null;
  return workflow.stopping === 'cancel' ? 'cancelled' : 'skipped';
}
