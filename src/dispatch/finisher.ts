import type { Timer } from '../core/clock.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Execution } from '../core/execution.js';
import type { JobError } from '../core/job.js';
import { Loop, logFailure } from '../core/loop.js';
import { type AttemptEnd, type Decision, decide } from '../core/transition.js';
import type { OriginReport } from '../core/wire.js';
import { stands } from '../host/test-switches.js';
import { Batcher } from '../store/batcher.js';
import { bisect } from '../store/bisect.js';
import { type HandedOn, handOnClaims } from '../store/claims.js';
import { isDatabaseBusy, isMissingPartition } from '../store/database.js';
import type { EndedJob, EndedStep } from '../store/ended-jobs.js';
import { type Ending, finishJobs, type Retrying, retryJobs } from '../store/finish-jobs.js';
import type { StoredAttempt } from '../store/job-places.js';
import { makePartition } from '../store/partitions.js';
import { type LeaderState, noLeader } from './leader-state.js';
import type { CallNews } from './origins.js';
import type { Running } from './running.js';

/** The largest batch of attempts that is ended in one transaction. */
const LIMITS = { items: 2_000, bytes: 4 * 1024 * 1024 };
/** When an end is tried again that could not be stored even in a batch of its own. */
const ASIDE_MS = 1_000;

const ANSWERS_AFTER_COMMIT = stands('commit-first');
const CHECKS_FENCE = stands('attempt');

/** Waits for the ends of one or more attempts, each known by its index. */
export interface EndListener {
  ended(index: number, accepted: boolean): void;
  failed(error: unknown): void;
}

/** The listener of ends that were answered before the commit, when tests have removed that fence. */
const NOBODY: EndListener = { ended: () => undefined, failed: () => undefined };

interface Pending {
  readonly running: Running;
  readonly decision: Decision;
  readonly startedAt: number | null;
  /** How it ran a program, as JSON; null if it ran none. */
  readonly execution: string | null;
  /** What the attempt tells about the origin that it called, if it tells anything. */
  readonly origin: OriginReport | undefined;
  readonly listener: EndListener;
  readonly index: number;
  /** Whether its outcome is known. */
  isSettled: boolean;
}

/**
 * Writes the ends of attempts, and that they were handed on, in batches. A report is answered after the commit, never
 * before. The turn of a job is held from the moment its end is decided until it is written.
 */
export class Finisher {
  private queue: Pending[] = [];
  private readonly batcher = new Batcher<Pending>(LIMITS, bytesOf);
  /** Ends that could not be written even alone, each with the timer of its next try. */
  private readonly aside = new Map<Pending, Timer>();
  private readonly loop: Loop;

  constructor(private readonly state: LeaderState) {
    this.loop = new Loop({
      name: 'finishing',
      everyMs: 60_000,
      pass: () => this.runOnce(),
      onError: logFailure(state.log, 'ended attempts could not be stored'),
    });
  }

  start(): void {
    this.loop.start();
  }

  async stop(): Promise<void> {
    await this.loop.stop();
    for (const timer of this.aside.values()) timer.cancel();
    for (const pending of [...this.queue.splice(0), ...this.aside.keys()]) {
      this.giveTurn(pending.running);
      pending.listener.failed(noLeader());
    }
  }

  /**
   * Ends the attempt (job, fence) if it is the one that runs; answers false when it is not. Waits while the turn of
   * the job is taken.
   */
  async end(jobId: string, fence: number, end: AttemptEnd, startedAt: number | null): Promise<boolean> {
    const { state } = this;
    while (state.turns.has(jobId)) await state.turns.untilFree(jobId);
    if (state.term.over) throw noLeader();
    const running = state.running.get(jobId);
    // If it was handed on while this waited for the turn, it is not lost with its worker.
    if (end.outcome === 'lost' && running?.isHandedOn) return false;
    return new Promise<boolean>((resolve, reject) => {
      const listener: EndListener = { ended: (_, accepted) => resolve(accepted), failed: reject };
      if (!running || !this.begin(running, fence, end, startedAt, listener, 0)) resolve(false);
    });
  }

  /**
   * Ends the attempt if it is the one that runs; answers false when it is not, without telling the listener. Must be
   * called only while the turn of the job is free. Called tens of thousands of times per second.
   */
  begin(
    running: Running,
    fence: number,
    end: AttemptEnd,
    startedAt: number | null,
    listener: EndListener,
    index: number,
  ): boolean {
    const { state } = this;
    if (state.term.over) throw noLeader();
    if (running.fence !== fence && CHECKS_FENCE) return false;
    running.isEnding = true;
    const decision = decide(running, end, Math.random());
    const origin = end.outcome === 'failed' ? end.origin : undefined;
    const heard = ANSWERS_AFTER_COMMIT ? listener : NOBODY;
    this.queue.push({
      running,
      decision,
      startedAt: startedAt ?? running.startedAt,
      execution: end.execution ?? null,
      origin,
      listener: heard,
      index,
      isSettled: false,
    });
    if (heard !== listener) listener.ended(index, true);
    if (this.queue.length === 1) this.loop.wake();
    return true;
  }

  /** Writes all pending ends. Ends, retries and hand-ons are separate transactions, independent of each other. */
  async runOnce(): Promise<void> {
    while (this.queue.length > 0) {
      const batch = this.queue.splice(0, this.batcher.count(this.queue));
      const startedAt = performance.now();
      const { hot, term } = this.state;
      const ends = batch.filter((pending) => pending.decision.kind === 'end');
      const agains = batch.filter((pending) => pending.decision.kind === 'again');
      const handOns = batch.filter((pending) => pending.decision.kind === 'hand-on');
      const outcomes = await Promise.allSettled([
        this.write(ends, (part, now) =>
          finishJobs(
            hot,
            term,
            part.map((each) => toEnding(each, now)),
            now,
          ),
        ),
        this.write(agains, (part, now) =>
          retryJobs(
            hot,
            term,
            part.map((each) => toRetrying(each, now)),
            now,
          ),
        ),
        this.write(handOns, (part, now) =>
          handOnClaims(
            hot,
            term,
            part.map((each) => toHandedOn(each, now)),
            now,
          ),
        ),
      ]);
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
      this.batcher.worked(batch, performance.now() - startedAt);
    }
  }

  private async write(
    batch: readonly Pending[],
    /** Answers with those that were not claimed as this leader thought. */
    store: (part: readonly Pending[], now: number) => Promise<ReadonlySet<string>>,
  ): Promise<void> {
    if (batch.length === 0) return;
    const now = this.state.clock.now();
    try {
      await this.state.write(() =>
        bisect(
          batch,
          async (part) => {
            const refused = await store(part, now);
            const steps = stepsAmong(part, refused, now);
            for (const pending of part) {
              const { running, decision } = pending;
              const isRefused = refused.has(running.id);
              pending.isSettled = true;
              this.settle(pending, !isRefused, now);
              if (decision.kind === 'end' && decision.state === 'failed' && !isRefused)
                this.logFailure(running, decision.error);
            }
            if (this.state.hearsEnds) this.state.ended(endedAmong(part, refused));
            if (steps.length > 0) this.state.noteSteps(steps);
            if (this.state.events.isHeard) this.tellEvents(part, refused);
            return part;
          },
          (pending, error) => {
            pending.isSettled = true;
            this.refuse(pending, error);
          },
        ),
      );
    } catch (error) {
      const left = batch.filter((pending) => !pending.isSettled);
      if (left.length === 1 && isDatabaseBusy(error)) this.setAside(left[0]!, error);
      else {
        await this.afterFailure(left, error);
        throw error;
      }
    }
  }

  private tellEvents(part: readonly Pending[], refused: ReadonlySet<string>): void {
    const { events } = this.state;
    for (const { running, decision } of part) {
      if (refused.has(running.id)) continue;
      if (decision.kind === 'end') events.ended(running, decision.state, decision.error);
      else if (decision.kind === 'again') events.retrying(running, decision.error);
    }
  }

  private logFailure(running: Running, error: JobError | null): void {
    const { id, tenant, task, fence: attempt } = running;
    const queue = this.state.directory.queue(running.queue)?.name;
    this.state.failures.failed(
      { id, tenant, task, queue, attempt },
      error ?? { message: 'no error is known' },
    );
  }

  private giveTurn(running: Running): void {
    running.isEnding = false;
    this.state.turns.wake(running.id);
  }

  private settle(pending: Pending, accepted: boolean, now: number): void {
    const { state } = this;
    const { running, decision, origin } = pending;
    if (accepted && state.origins.isInUse) {
      const tookMs = now - (startOf(pending, now) ?? running.claimedAt);
      state.origins.told(running, newsOf(decision, origin), tookMs, origin);
    }
    if (accepted && decision.kind === 'hand-on') state.handOn(running, startOf(pending, now));
    else state.endRunning(running);
    if (accepted && decision.kind !== 'hand-on')
      state.meters.ended(running, decision.outcome, startOf(pending, now), now);
    this.giveTurn(running);
    if (accepted && decision.kind === 'again') {
      const runAt = retryAt(running, decision, now);
      void state.admit([running.waitingAgain(runAt)]);
    }
    if (accepted && origin?.isGone && running.facts.schedule !== null) state.noteGone(running);
    pending.listener.ended(pending.index, accepted);
    // Memory held a claim that the table does not have; only a new term, which reads everything, makes them agree.
    if (!accepted) state.doubt(`job ${running.id} was not claimed as this leader thought`);
  }

  /** Fails the job whose result the database cannot store; other jobs of its batch are not affected. */
  private refuse(pending: Pending, error: unknown): void {
    this.giveTurn(pending.running);
    const failure: JobError = {
      code: 'UNSTORABLE',
      message: `The outcome could not be stored: ${messageOf(error)}`,
    };
    const { running, listener, index } = pending;
    const end: AttemptEnd = { outcome: 'failed', error: failure, retryable: false };
    try {
      if (!this.begin(running, running.fence, end, null, listener, index)) listener.ended(index, false);
    } catch (failure) {
      listener.failed(failure);
    }
  }

  /** Retries later the end of a job that another session has locked, so that no other end waits for it. */
  private setAside(pending: Pending, error: unknown): void {
    const { state } = this;
    const { id } = pending.running;
    state.log.warn({ job: id, error: messageOf(error) }, 'the end of an attempt could not be stored yet');
    this.batcher.failed([pending]);
    const timer = state.clock.after(ASIDE_MS, () => {
      this.aside.delete(pending);
      this.queue.push(pending);
      this.loop.wake();
    });
    this.aside.set(pending, timer);
  }

  private async afterFailure(batch: readonly Pending[], error: unknown): Promise<void> {
    const { state } = this;
    if (state.term.over || (error instanceof PunctualError && error.code === 'NO_LEADER')) {
      for (const pending of batch) {
        this.giveTurn(pending.running);
        pending.listener.failed(noLeader(error));
      }
      return;
    }
    // The server rolled the transaction back, so all of it can be repeated.
    this.queue = batch.concat(this.queue);
    if (isMissingPartition(error)) await makePartition(state.hot, 'job_history', state.clock.now());
    else this.batcher.failed(batch);
  }
}

/** The jobs that have ended with their attempts. */
function endedAmong(part: readonly Pending[], refused: ReadonlySet<string>): EndedJob[] {
  return part.flatMap(({ running: { id, tenant }, decision }) =>
    decision.kind === 'end' && !refused.has(id) ? [{ id, tenant, state: decision.state }] : [],
  );
}

/** The steps of workflows that have ended with their attempts; known from memory, so that no statement need return them. */
function stepsAmong(part: readonly Pending[], refused: ReadonlySet<string>, finishedAt: number): EndedStep[] {
  const steps: EndedStep[] = [];
  for (const { running, decision } of part) {
    const { workflow } = running.facts;
    if (workflow !== null && decision.kind === 'end' && !refused.has(running.id))
      steps.push({ job: running.id, workflow, state: decision.state, finishedAt });
  }
  return steps;
}

/** The codes of errors that say which status a call was answered with. */
const ANSWERED = /^HTTP_STATUS_\d/;

/**
 * What an attempt tells about the origin that it called. A failure that has neither a report nor a status was none of the
 * origin's: the call was not made. What was lost or stopped tells nothing.
 */
function newsOf(decision: Decision, report: OriginReport | undefined): CallNews {
  if (decision.kind === 'hand-on' || decision.outcome === 'succeeded') return 'answered';
  if (decision.outcome === 'timed-out' || report?.isDown) return 'down';
  if (decision.outcome !== 'failed') return 'nothing';
  return report || ANSWERED.test(decision.error?.code ?? '') ? 'answered' : 'nothing';
}

/** About how many bytes an attempt's end writes: the payload moves to history with the job. */
function bytesOf({ running, decision, execution }: Pending): number {
  const result = decision.kind === 'end' ? (decision.result?.length ?? 0) : 0;
  return 256 + 1_024 * running.sizeKib + result + (execution?.length ?? 0);
}

function retryAt(running: Running, decision: Extract<Decision, { kind: 'again' }>, now: number): number {
  // The next attempt after a lost one is due at once and keeps its position in the order.
  return decision.outcome === 'lost' ? Math.min(running.runAt, now) : now + decision.delayMs;
}

function lateness(running: Running, startedAt: number | null): number {
  return running.lateBy ?? Math.max(0, (startedAt ?? running.claimedAt) - running.runAt);
}

/** When the attempt started; never in the future, although the worker's clock may be ahead. */
function startOf({ startedAt }: Pending, now: number): number | null {
  return startedAt === null ? null : Math.min(startedAt, now);
}

function toHandedOn(pending: Pending, now: number): HandedOn {
  const { id, fence } = pending.running;
  return { id, fence, startedAt: startOf(pending, now) };
}

function toEnding(pending: Pending, now: number): Ending {
  const { running, decision, execution } = pending;
  if (decision.kind !== 'end') throw new Error('not an end');
  return {
    id: running.id,
    fence: running.fence,
    worker: running.worker,
    epoch: running.epoch,
    claimedAt: running.claimedAt,
    startedAt: startOf(pending, now),
    state: decision.state,
    outcome: decision.outcome,
    result: decision.result,
    error: decision.error === null ? null : JSON.stringify(decision.error),
    progress: running.progress === null ? null : JSON.stringify(running.progress),
    execution,
  };
}

function toRetrying({ running, decision, startedAt, execution }: Pending, now: number): Retrying {
  if (decision.kind !== 'again') throw new Error('not a retry');
  const attempt: StoredAttempt = {
    fence: running.fence,
    epoch: running.epoch,
    worker: running.worker,
    claimedAt: running.claimedAt,
    startedAt,
    finishedAt: now,
    outcome: decision.outcome,
    error: decision.error,
    ...(execution !== null && { execution: JSON.parse(execution) as Execution }),
  };
  return {
    id: running.id,
    fence: running.fence,
    outcome: decision.outcome,
    runAt: retryAt(running, decision, now),
    lateBy: lateness(running, startedAt),
    attempt: JSON.stringify(attempt),
  };
}
