import { PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import type { ReportAnswer } from '../core/wire.js';
import type { Attempt } from './attempt.js';
import { AttemptLedger } from './attempt-ledger.js';
import type { SizedResult } from './attempt-result.js';
import { ClaimLoop, startInPortions } from './claim-loop.js';
import { Executor } from './executor.js';
import { asPunctualError } from './failure.js';
import { HeartbeatLoop } from './heartbeat-loop.js';
import { pause } from './pause.js';
import { ProcessGuard } from './process-guard.js';
import { Reporter } from './reporter.js';
import type { Runner } from './runners/runner.js';
import { ServerClock } from './server-clock.js';
import { Session } from './session.js';
import { type ResolvedWorkerOptions, resolveWorkerOptions, type WorkerOptions } from './worker-options.js';

/** How a worker came to its end: with everything done and reported, or at once. */
export type WorkerEnd = 'drained' | 'stopped';

export type WorkerPhase = 'new' | 'starting' | 'running' | 'draining' | 'ended';

export interface WorkerStatus {
  readonly phase: WorkerPhase;
  /** Empty before the worker is registered. */
  readonly workerId: string;
  readonly slots: number;
  readonly running: number;
  /** Attempts received whose report the scheduler has not answered yet, the running ones included. */
  readonly unanswered: number;
}

export interface WorkerRuntimeParts {
  readonly gateway: WorkerGateway;
  /** One per kind of target. */
  readonly runners: readonly Runner[];
  readonly options?: WorkerOptions;
}

/**
 * A worker: registers, sends heartbeats, claims jobs, runs them and reports their results. It outlives the
 * scheduler: whatever happens there, it finishes what it runs and delivers the results to whichever leader
 * answers next.
 */
export class WorkerRuntime {
  readonly #gateway: WorkerGateway;
  readonly #options: ResolvedWorkerOptions;
  readonly #ledger = new AttemptLedger<Attempt>();
  readonly #clock = new ServerClock();
  readonly #session: Session;
  readonly #executor: Executor;
  readonly #claims: ClaimLoop;
  readonly #heartbeats: HeartbeatLoop;
  readonly #reporter: Reporter;
  /** Aborts when nothing more may be sent. */
  readonly #over = new AbortController();
  /** Aborts when no more work is wanted, which ends a registration that nobody answers. */
  readonly #closing = new AbortController();
  readonly #end: Promise<WorkerEnd>;
  #resolveEnd!: (end: WorkerEnd) => void;
  #resolveQuiet: () => void = () => undefined;
  #phase: WorkerPhase = 'new';

  constructor({ gateway, runners, options = {} }: WorkerRuntimeParts) {
    this.#gateway = gateway;
    this.#options = resolveWorkerOptions(options);
    this.#end = new Promise((resolve) => {
      this.#resolveEnd = resolve;
    });
    const { name, queues, slots, labels, events } = this.#options;
    const targets = runners.map((runner) => runner.target);
    const tasks = runners.flatMap((runner) => runner.tasks);
    this.#session = new Session(
      gateway,
      { name, queues, slots, targets, tasks, labels },
      this.#clock,
      events,
    );
    this.#reporter = new Reporter({
      send: (results) => this.#report(results),
      onAnswered: (attempt) => this.#answered(attempt),
      events,
      signal: this.#over.signal,
    });
    this.#executor = new Executor({
      gateway,
      runners,
      options: this.#options,
      clock: this.#clock,
      onResult: (attempt, sized) => this.#reporter.add(attempt, sized),
      onSlotFree: () => this.#claims.slotFreed(),
    });
    this.#claims = new ClaimLoop({
      freeSlots: () => this.#freeSlots(),
      claim: (max, wait, signal) => this.#claim(max, wait, signal),
    });
    this.#heartbeats = new HeartbeatLoop({
      beat: (signal) => this.#beat(signal),
      intervalMs: () => this.#session.heartbeatIntervalMs,
      limitMs: () => Math.max(1_000, this.#session.workerTimeoutMs / 3),
    });
    this.#session.onNewEpoch = () => this.#heartbeats.wake();
  }

  /** What the worker is doing now. */
  status(): WorkerStatus {
    return {
      phase: this.#phase,
      workerId: this.#session.workerId,
      slots: this.#options.slots,
      running: this.#executor.busy,
      unanswered: this.#ledger.unansweredCount,
    };
  }

  /** Registers, waiting for a leader if there is none, and begins to work. */
  async start(): Promise<void> {
    if (this.#phase !== 'new') throw new PunctualError('USAGE', 'A worker can be started once only.');
    this.#phase = 'starting';
    try {
      await this.#session.register(this.#closing.signal);
    } catch (error) {
      this.#finish('stopped');
      throw error;
    }
    // A drain or stop while nobody answered the registration has the last word.
    if (this.#closing.signal.aborted) {
      await this.#leave();
      return;
    }
    this.#phase = 'running';
    this.#heartbeats.start();
    this.#claims.start();
  }

  /** Takes no more jobs, finishes and reports those it has, and leaves. Resolves when all that is done. */
  async drain(): Promise<void> {
    if (this.#phase === 'new' || this.#phase === 'starting') {
      this.#closing.abort();
      this.#finish('drained');
    }
    if (this.#phase !== 'running') {
      await this.#end;
      return;
    }
    this.#phase = 'draining';
    this.#closing.abort();
    await this.#claims.close();
    await this.#quiet();
    if (this.#over.signal.aborted) return;
    await this.#heartbeats.stop();
    await this.#leave();
    this.#finish('drained');
  }

  /** Ends at once: aborts the signals of all handlers and reports nothing further. */
  async stop(): Promise<void> {
    if (this.#over.signal.aborted) {
      await this.#end;
      return;
    }
    this.#closing.abort();
    this.#over.abort();
    for (const attempt of this.#ledger.unanswered()) this.#executor.stop(attempt, 'shutdown');
    this.#executor.close();
    this.#resolveQuiet();
    await Promise.all([this.#claims.stop(), this.#heartbeats.stop()]);
    // Leaving says that nothing was left undone. With attempts unreported only silence tells the truth.
    if (this.#ledger.unansweredCount === 0) await this.#leave();
    this.#finish('stopped');
  }

  /**
   * Works until drained, as the main business of the process: the first SIGTERM or SIGINT drains, the second
   * stops at once. A leader may also order to drain. Handlers cannot end the process meanwhile, unless
   * `guardProcess` is false.
   */
  async run(): Promise<WorkerEnd> {
    const onSignal = () => void (this.#phase === 'draining' ? this.stop() : this.drain());
    const guard = this.#options.guardProcess ? new ProcessGuard(this.#blame) : null;
    this.#executor.guard = guard;
    guard?.install();
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
    try {
      await this.start();
      return await this.#end;
    } finally {
      process.off('SIGTERM', onSignal);
      process.off('SIGINT', onSignal);
      guard?.uninstall();
    }
  }

  readonly #blame = (attempt: Attempt, thrown: unknown): void => {
    if (attempt.phase === 'ended') {
      const { jobId } = attempt;
      this.#options.events.onWarning?.(
        new PunctualError('INTERNAL', `Job ${jobId} left something behind that failed after its end.`, {
          cause: thrown,
        }),
      );
      return;
    }
    this.#executor.end(attempt, { kind: 'threw', thrown });
  };

  /**
   * Slots to fill. A scheduler that hands out jobs but does not take their results must not fill the memory,
   * so results that wait to be taken count once there are many of them.
   */
  #freeSlots(): number {
    const { slots } = this.#options;
    const waiting = this.#ledger.unansweredCount - this.#executor.busy;
    return waiting > 4 * slots + 1_000 ? 0 : slots - this.#executor.busy;
  }

  async #claim(max: number, wait: string, signal: AbortSignal): Promise<number> {
    const { workerId } = this.#session;
    const claim = this.#ledger.openClaim();
    const received: Attempt[] = [];
    try {
      const answer = await this.#gateway.claim(workerId, { max, wait }, signal);
      if (workerId !== this.#session.workerId || !this.#session.accepts(answer.epoch)) return 0;
      // Everything is noted before anything starts, and before the claim counts as ended.
      for (const job of answer.jobs) {
        const attempt = this.#ledger.receive(job, () => this.#executor.accept(job));
        if (attempt) received.push(attempt);
      }
    } catch (error) {
      if (!signal.aborted) await this.#failed(workerId, error);
      throw error;
    } finally {
      this.#ledger.closeClaim(claim);
    }
    await startInPortions(received, (attempt) => this.#executor.start(attempt));
    return received.length;
  }

  async #beat(signal: AbortSignal): Promise<void> {
    const { workerId, epoch } = this.#session;
    const running = Array.from(this.#ledger.unanswered(), ({ jobId, fence }) => ({ jobId, fence }));
    const askedAt = this.#clock.mark();
    try {
      const answer = await this.#gateway.heartbeat(workerId, { epoch, running }, signal);
      if (workerId !== this.#session.workerId || !this.#session.accepts(answer.epoch)) return;
      this.#clock.compare(answer.now, askedAt);
      for (const { jobId, fence } of answer.stop) {
        const attempt = this.#ledger.find(jobId, fence);
        if (attempt) this.#executor.stop(attempt, 'leader');
      }
      if (answer.drain) void this.drain();
    } catch (error) {
      if (!this.#over.signal.aborted) await this.#failed(workerId, error);
      throw error;
    }
  }

  async #report(results: readonly SizedResult['result'][]): Promise<ReportAnswer | null> {
    const { workerId } = this.#session;
    try {
      const answer = await this.#gateway.report(workerId, { results }, this.#over.signal);
      return this.#session.accepts(answer.epoch) ? answer : null;
    } catch (error) {
      if (asPunctualError(error).code === 'WORKER_NOT_FOUND') await this.#renew(workerId);
      throw error;
    }
  }

  #answered(attempt: Attempt): void {
    this.#ledger.answer(attempt.jobId, attempt.fence);
    if (this.#ledger.unansweredCount === 0) this.#resolveQuiet();
    this.#claims.slotFreed();
  }

  /** A leader that does not know the worker gets to know it; everything else passes by itself. */
  async #failed(workerId: string, thrown: unknown): Promise<void> {
    const error = asPunctualError(thrown);
    if (error.code === 'WORKER_NOT_FOUND') await this.#renew(workerId);
    else this.#options.events.onWarning?.(error);
  }

  async #renew(workerId: string): Promise<void> {
    await this.#session.renew(workerId, this.#over.signal);
    this.#heartbeats.wake();
  }

  /** Resolves when every report is answered, or when the worker is stopped. */
  async #quiet(): Promise<void> {
    if (this.#ledger.unansweredCount === 0 || this.#over.signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#resolveQuiet = resolve;
    });
  }

  async #leave(): Promise<void> {
    const { workerId } = this.#session;
    if (workerId === '') return;
    for (let tries = 0; tries < 3; tries++) {
      try {
        await this.#gateway.leave(workerId);
        return;
      } catch (error) {
        if (asPunctualError(error).status !== 503) return;
        await pause(200);
      }
    }
  }

  #finish(end: WorkerEnd): void {
    this.#over.abort();
    this.#executor.close();
    this.#phase = 'ended';
    this.#resolveEnd(end);
  }
}
