import { asPunctualError, PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import { VERSION } from '../core/version.js';
import { ONE_ORDER_MS } from '../host/processes.js';
import { pause } from '../transport/pause.js';
import { AttemptLedger } from './attempt-ledger.js';
import { ClaimLoop } from './claim-loop.js';
import { Executor } from './executor.js';
import { HeartbeatThread } from './heartbeat-thread.js';
import type { Heartbeats } from './heartbeats.js';
import { heartbeatsFromThisThread } from './heartbeats.js';
import { HttpWorkerGateway } from './http-gateway.js';
import { LeaderLink } from './leader-link.js';
import { ProcessGuard } from './process-guard.js';
import { publishTasks } from './publication.js';
import { Registration } from './registration.js';
import { Reporter, type ReportOutcome } from './reporter.js';
import { ResultKeeper } from './result-keeper.js';
import type { Runner } from './runners/runner.js';
import type { Attempt } from './running-attempt.js';
import { monotonic, ServerClock } from './worker-clock.js';
import { WorkerHooks } from './worker-hooks.js';
import { WorkerLog } from './worker-log.js';
import {
  type ResolvedWorkerOptions,
  resolveWorkerOptions,
  type WorkerEnd,
  type WorkerOptions,
  type WorkerPhase,
  type WorkerStatus,
} from './worker-options.js';

interface WorkerRuntimeParts {
  readonly gateway: WorkerGateway;
  /** One per kind of target. */
  readonly runners: readonly Runner[];
  readonly options?: WorkerOptions;
}

/**
 * A worker: registers, sends heartbeats, claims jobs, runs them and reports their results. It survives outages of the
 * scheduler: it finishes its jobs and delivers the results to the leader that answers next.
 */
export class WorkerRuntime {
  readonly #gateway: WorkerGateway;
  readonly #options: ResolvedWorkerOptions;
  readonly #log: WorkerLog;
  readonly #hooks: WorkerHooks;
  readonly #ledger = new AttemptLedger<Attempt>();
  readonly #runners: readonly Runner[];
  readonly #registration: Registration;
  readonly #executor: Executor;
  readonly #leader: LeaderLink;
  readonly #claims: ClaimLoop;
  readonly #heartbeats: Heartbeats;
  readonly #reporter: Reporter<Attempt>;
  /** Aborts when nothing more may be sent. */
  readonly #over = new AbortController();
  /** Aborts when no more jobs are wanted, which also ends a registration that is not answered. */
  readonly #closing = new AbortController();
  readonly #end: Promise<WorkerEnd>;
  #keeping: ResultKeeper | null = null;
  #resolveEnd!: (end: WorkerEnd) => void;
  #resolveQuiet: () => void = () => undefined;
  #phase: WorkerPhase = 'new';

  constructor({ gateway, runners, options = {} }: WorkerRuntimeParts) {
    this.#gateway = gateway;
    this.#runners = runners;
    this.#options = resolveWorkerOptions(options, [...new Set(runners.flatMap(({ queues }) => queues))]);
    this.#end = new Promise((resolve) => {
      this.#resolveEnd = resolve;
    });
    const { name, log, events } = this.#options;
    const network = gateway instanceof HttpWorkerGateway ? gateway.network : null;
    this.#log = new WorkerLog({ log, name, urls: network?.options.urls ?? [] });
    this.#hooks = new WorkerHooks(events, (hook, thrown) => this.#log.hookFailed(hook, thrown));
    const clock = new ServerClock();
    this.#registration = this.#openRegistration(runners, clock);
    for (const runner of runners) {
      runner.open?.({
        gateway,
        session: () => this.#registration.key,
        options: this.#options,
        urls: network?.options.urls ?? [],
        clock,
        workerTimeoutMs: () => this.#registration.workerTimeoutMs,
        onWarning: this.#warn,
      });
    }
    this.#executor = new Executor({
      gateway,
      runners,
      options: this.#options,
      hooks: this.#hooks,
      log: this.#log,
      onWarning: this.#warn,
      clock,
      onResult: (attempt, sized) => this.#reporter.add(attempt, sized),
      onSlotFree: () => this.#claims.slotFreed(),
    });
    this.#leader = new LeaderLink({
      gateway,
      registration: this.#registration,
      ledger: this.#ledger,
      executor: this.#executor,
      clock,
      over: this.#over.signal,
      onNews: () => this.#heartbeats.wake(),
      onAnswered: () => this.#log.inContact(),
      onDrain: () => void this.drain(),
      onWarning: this.#warn,
    });
    this.#reporter = new Reporter({
      triesAtOnce: gateway.triesAtOnce,
      send: (results) => this.#leader.report(results),
      onAnswered: (attempt, outcome) => this.#answered(attempt, outcome),
      onFailure: (error, atOnce) => {
        if (!atOnce) this.#warn(error);
        this.#keeping?.failed();
      },
      signal: this.#over.signal,
    });
    this.#claims = new ClaimLoop({
      triesAtOnce: gateway.triesAtOnce,
      freeSlots: () => this.#freeSlots(),
      claim: (max, wait, signal) => this.#leader.claim(max, wait, signal),
      onFailure: (error) => {
        // The worker registers anew, and `onRegistered` tells that.
        if (error.code !== 'WORKER_NOT_FOUND') this.#warn(error);
      },
    });
    this.#heartbeats = this.#openHeartbeats();
  }

  /** What the worker is doing now. */
  status(): WorkerStatus {
    const { lastAnswerAt } = this.#leader;
    return {
      phase: this.#phase,
      name: this.#options.name,
      workerId: this.#registration.workerId,
      epoch: this.#registration.epoch,
      queues: this.#options.queues,
      slots: this.#options.slots,
      running: this.#executor.busy,
      unanswered: this.#ledger.unansweredCount,
      kept: this.#keeping?.size ?? 0,
      lastAnswerMs: lastAnswerAt === null ? null : Math.round(monotonic.now() - lastAnswerAt),
    };
  }

  /**
   * Delivers the results that an earlier process left, publishes its tasks if it should, registers (which waits for a leader if there is none), and
   * begins to work.
   */
  async start(): Promise<void> {
    if (this.#phase !== 'new') throw new PunctualError('USAGE', 'A worker can be started once only.');
    this.#phase = 'starting';
    const { queues, slots } = this.#options;
    const { tasks } = this.#registration;
    if (tasks.length === 0 && this.#runners.every(({ target }) => target === 'handler'))
      this.#log.withoutTasks();
    this.#log.connecting({ queues, slots, tasks });
    try {
      await Promise.all(this.#runners.map((runner) => runner.prepare?.()));
      await this.#keepResults();
      await this.#publish();
      await this.#registration.register(this.#closing.signal);
    } catch (error) {
      this.#log.refused(asPunctualError(error));
      await this.#finish('stopped');
      throw error;
    }
    // The worker was drained or stopped while it was registering.
    if (this.#closing.signal.aborted) {
      await this.#leave();
      return;
    }
    this.#phase = 'running';
    this.#heartbeats.start();
    this.#claims.start();
  }

  /**
   * Takes no more jobs, finishes and reports those it has, and leaves. Resolves when that is done, or when the worker
   * was stopped because it took longer than `drainTimeoutMs`.
   */
  async drain(): Promise<void> {
    if (this.#phase === 'new' || this.#phase === 'starting') {
      this.#closing.abort();
      await this.#finish('drained');
    }
    if (this.#phase !== 'running') {
      await this.#end;
      return;
    }
    this.#phase = 'draining';
    this.#log.draining(this.status());
    this.#closing.abort();
    const enough = monotonic.at(monotonic.now() + this.#options.drainTimeoutMs, () => void this.stop());
    await this.#claims.close();
    await this.#quiet();
    enough.cancel();
    if (this.#over.signal.aborted) {
      await this.#end;
      return;
    }
    await this.#heartbeats.stop();
    if (this.#ledger.isSettled) await this.#leave();
    await this.#finish('drained');
  }

  /**
   * Ends at once: aborts the signals of all handlers and sends no more reports. Undelivered results are kept if there
   * is a folder for them.
   */
  async stop(): Promise<void> {
    if (this.#over.signal.aborted) {
      await this.#end;
      return;
    }
    this.#closing.abort();
    // This comes before the handlers are told to stop: how they end after that is not a result.
    this.#keeping?.keepNow();
    this.#over.abort();
    for (const attempt of this.#ledger.unanswered()) this.#executor.stop(attempt, 'shutdown');
    this.#executor.close();
    this.#resolveQuiet();
    await Promise.all([this.#claims.stop(), this.#heartbeats.stop()]);
    // Leaving tells the leader that every attempt is reported. If some are not, the session must end by its timeout.
    if (this.#ledger.isSettled) await this.#leave();
    await this.#finish('stopped');
  }

  /**
   * Works until drained, as the main purpose of the process: the first SIGTERM or SIGINT drains, the second stops at
   * once. A leader may also order to drain. Handlers cannot end the process meanwhile, unless `guardProcess` is
   * false.
   */
  async run(): Promise<WorkerEnd> {
    let drainedAt = Number.NEGATIVE_INFINITY;
    const onSignal = () => {
      if (this.#phase !== 'draining') drainedAt = monotonic.now();
      else if (monotonic.now() - drainedAt < ONE_ORDER_MS) return;
      void (this.#phase === 'draining' ? this.stop() : this.drain());
    };
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

  #openRegistration(runners: readonly Runner[], clock: ServerClock): Registration {
    const { name, queues, slots, labels, rate, shared } = this.#options;
    const targets = runners.map((runner) => runner.target);
    const tasks = runners.flatMap((runner) => runner.tasks);
    return new Registration({
      gateway: this.#gateway,
      registration: {
        ...{ name, queues, slots, targets, tasks, labels, version: VERSION },
        ...(rate && { rate }),
        ...(shared && { shared }),
      },
      clock,
      previousSession: () => this.#keeping?.endedSession ?? '',
      onRegistered: (session) => {
        this.#keeping?.noteSession(session);
        this.#log.registered(session.workerId);
        this.#hooks.registered(session.workerId);
      },
      onNewEpoch: () => {
        this.#heartbeats.wake();
        this.#claims.renew();
      },
      onWarning: this.#warn,
    });
  }

  /** Over HTTP heartbeats come from a thread of their own; a worker inside a node's process needs none. */
  #openHeartbeats(): Heartbeats {
    const standIn = () => heartbeatsFromThisThread(this.#gateway, this.#leader);
    const network = this.#gateway instanceof HttpWorkerGateway ? this.#gateway.network : null;
    if (!network) return standIn();
    return new HeartbeatThread({
      nodes: network.options,
      source: this.#leader,
      standIn,
      onSilentNode: (url) => network.abandon(url),
      onWarning: this.#warn,
    });
  }

  async #keepResults(): Promise<void> {
    const folder = this.#options.keepResultsIn;
    if (folder === null) return;
    this.#keeping = new ResultKeeper({
      folder,
      gateway: this.#gateway,
      undelivered: () => this.#reporter.undelivered(),
      onWarning: this.#warn,
      signal: this.#over.signal,
    });
    await this.#keeping.start();
  }

  /** Before the registration: whoever sees the worker can rely on what it publishes. */
  async #publish(): Promise<void> {
    const { publish, name } = this.#options;
    if (publish === false) return;
    await publishTasks({
      gateway: this.#gateway,
      tasks: this.#runners.flatMap(({ definitions = [] }) => definitions),
      publishedBy: name,
      overwrite: publish === 'overwrite',
      signal: this.#closing.signal,
      onWarning: this.#warn,
    });
  }

  readonly #warn = (warning: PunctualError): void => {
    this.#log.warning(warning);
    this.#hooks.warning(warning);
  };

  readonly #blame = (attempt: Attempt, thrown: unknown): void => {
    if (attempt.phase === 'ended') {
      const { jobId } = attempt;
      this.#warn(
        new PunctualError('INTERNAL', `Code of job ${jobId} failed after its attempt had ended.`, {
          cause: thrown,
        }),
      );
      return;
    }
    this.#executor.end(attempt, { kind: 'threw', thrown });
  };

  /**
   * The slots to fill; none while very many results are not answered, because a scheduler that hands out jobs but
   * does not answer reports would fill the memory.
   */
  #freeSlots(): number {
    const { slots } = this.#options;
    const waiting = this.#ledger.unansweredCount - this.#executor.busy;
    return waiting > 4 * slots + 1_000 ? 0 : slots - this.#executor.busy;
  }

  #answered(attempt: Attempt, outcome: ReportOutcome): void {
    if (outcome === 'refused') this.#ledger.giveUp(attempt);
    else this.#ledger.answer(attempt);
    this.#keeping?.answered(attempt);
    this.#hooks.reported(attempt.assignment, outcome);
    if (this.#ledger.unansweredCount === 0) this.#resolveQuiet();
    this.#claims.slotFreed();
  }

  /** Resolves when every report is answered, or when the worker is stopped. */
  async #quiet(): Promise<void> {
    if (this.#ledger.unansweredCount === 0 || this.#over.signal.aborted) return;
    await new Promise<void>((resolve) => {
      this.#resolveQuiet = resolve;
    });
  }

  /** Leaves; to be called only when all attempts are reported and no more can arrive. */
  async #leave(): Promise<void> {
    const { key } = this.#registration;
    if (key.workerId === '') return;
    for (let tries = 0; tries < 3; tries++) {
      try {
        await this.#gateway.leave(key, { settled: true });
        return;
      } catch (error) {
        if (asPunctualError(error).status !== 503) return;
        await pause(200);
      }
    }
  }

  async #finish(end: WorkerEnd): Promise<void> {
    if (this.#phase === 'ended') return;
    this.#over.abort();
    this.#executor.close();
    const wasStarted = this.#phase !== 'new';
    this.#phase = 'ended';
    await this.#keeping?.stop(this.#ledger.isSettled ? 'in-order' : 'at-once');
    await Promise.all(this.#runners.map((runner) => runner.close?.()));
    if (wasStarted) this.#log.ended(end, this.status());
    this.#resolveEnd(end);
  }
}
