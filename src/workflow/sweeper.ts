import type { EndState } from '../core/job.js';
import { Loop, logFailure } from '../core/loop.js';
import { endWaitingJobs } from '../store/end-waiting-jobs.js';
import { holdWorkflow, parkSteps, unparkSteps } from '../store/hold-workflow.js';
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
 * Does to the steps of workflows what stopping, holding and releasing means, page by page. Steps of one that stops and that
 * have not started are skipped, or cancelled with their workflow; those that run, or have run and wait for another attempt,
 * are cancelled or left alone, as the workflow says. Of a workflow on hold, those that could start are parked; of one that was
 * released they go on.
 */
export class Sweeper {
  private readonly loop: Loop;

  constructor(
    private readonly leader: WorkflowLeader,
    private readonly executor: WorkflowExecutor,
    private readonly cancelJob: CancelJob,
  ) {
    this.loop = new Loop({
      name: 'stopping and holding workflows',
      everyMs: EVERY_MS,
      pass: () => this.runOnce(),
      onError: logFailure(leader.log, 'steps of a workflow that stops or is held could not be told'),
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
      const page = await this.whileItIsSo(workflow, async () => {
        const found = await readUnended(leader.hot, workflow.id, after, PAGE);
        const steps = await this.steerInner(workflow, found);
        const hasEnded = await this.endWaiting(workflow, steps);
        const isDone = (await this.parkOrLetGo(workflow, steps)) && hasEnded;
        return { steps, isDone, last: found.at(-1)?.id, isLast: found.length < PAGE };
      });
      if (page === null) return false;
      const { steps, last, isLast } = page;
      if (!page.isDone) isDone = false;
      if (!(await this.cancelRunning(workflow, steps))) isDone = false;
      if (isLast || leader.isOver) return isDone;
      after = last!;
    }
  }

  /**
   * The steps without those whose workflows run: these end when their workflows do, which are cancelled if what runs is, and
   * held and released like the one around them, but for those that somebody has held by themselves.
   */
  private async steerInner(
    workflow: UnsweptWorkflow,
    steps: readonly UnendedStep[],
  ): Promise<readonly UnendedStep[]> {
    const { hot, term } = this.leader;
    const { tenant, held } = workflow;
    const running = new Set<string>();
    for (const { id, inner, gone } of steps) {
      if (inner === null || gone) continue;
      const now = await readWorkflow(hot, tenant, inner);
      if (now?.state !== 'running') continue;
      running.add(id);
      const isSteered = cancelsRunning(workflow)
        ? await this.leader.write(() => cancelWorkflow(hot, term, tenant, inner))
        : await this.leader.write(() => holdWorkflow(hot, term, tenant, inner, held, true));
      if (isSteered) this.wake();
    }
    return running.size === 0 ? steps : steps.filter(({ id }) => !running.has(id));
  }

  /** Runs something alone; answers null, with nothing done, if somebody steered the workflow meanwhile. */
  private whileItIsSo<T>(
    { id, tenant, stopping, run, held }: UnsweptWorkflow,
    work: () => Promise<T>,
  ): Promise<T | null> {
    return this.executor.alone(async () => {
      const now = await readWorkflow(this.leader.hot, tenant, id);
      return now?.stopping === stopping && now.run === run && now.held === held ? work() : null;
    });
  }

  /** Parks the steps of a workflow on hold that could start, or lets those go on that are parked. */
  private async parkOrLetGo(workflow: UnsweptWorkflow, steps: readonly UnendedStep[]): Promise<boolean> {
    const { leader } = this;
    const { held } = workflow;
    const waiting = steps.filter((step) => !step.claimed && !step.gone && endOf(workflow, step) === null);
    // A live step of a workflow that was released may have been left out of memory because of the hold.
    const chosen = waiting.filter(({ later, blocked, parked }) =>
      held ? !later || !blocked : !later || parked,
    );
    const mine = chosen.filter(({ id }) => !leader.running.has(id) && leader.tryTurn(id)).map(({ id }) => id);
    if (mine.length === 0) return chosen.length === 0;
    try {
      if (held) {
        const { moved } = await leader.write(() => parkSteps(leader.hot, leader.term, mine));
        leader.addedJobs.note(workflow.tenant, 0, moved);
      } else {
        const { laterThreshold } = leader.config;
        const now = leader.clock.now();
        const live = await leader.write(() =>
          unparkSteps(leader.hot, leader.term, mine, now, laterThreshold),
        );
        leader.addedJobs.note(workflow.tenant, live.length, 0);
      }
    } finally {
      for (const id of mine) leader.turns.release(id);
      // Also after a failure, because taking the turn removed the job from the backlog.
      await leader.follow(mine);
    }
    return mine.length === chosen.length;
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
      await this.whileItIsSo(workflow, () => this.cancelJob(workflow.tenant, id)).catch((error: unknown) => {
        // Mostly it has just ended; else the next pass tries again.
        this.leader.log.debug({ job: id, error }, 'a running step could not be cancelled');
        isDone = false;
      });
    }
    return isDone;
  }
}

function cancelsRunning({ stopping, running }: UnsweptWorkflow): boolean {
  return stopping === 'cancel' || (stopping !== null && running === 'cancel');
}

/** How a step that waits ends; null if it does not. */
function endOf(workflow: UnsweptWorkflow, { blocked, parked, attempts, gone }: UnendedStep): EndState | null {
  if (gone || workflow.stopping === null) return null;
  if (blocked && !parked) return 'skipped';
  if ((attempts ?? 0) > 0) return cancelsRunning(workflow) ? 'cancelled' : null;
  return workflow.stopping === 'cancel' ? 'cancelled' : 'skipped';
}
