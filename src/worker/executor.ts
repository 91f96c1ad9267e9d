import type { Clock } from '../core/clock.js';
import { asPunctualError, type PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import type { TargetType } from '../core/job.js';
import { PermanentError } from '../core/task.js';
import type { Assignment, AttemptResult } from '../core/wire.js';
import type { AddedSteps, StepAddition } from '../core/workflow.js';
import { pause } from '../transport/pause.js';
import { type AttemptTrace, lookForTracing, traceAttempt } from '../transport/tracing.js';
import { type LogDelivery, LogSender, ProgressSender } from './attempt-output.js';
import { type Ending, resultOf, type SizedResult } from './attempt-result.js';
import { Deadlines } from './deadlines.js';
import { runThrough } from './middleware.js';
import type { ProcessGuard } from './process-guard.js';
import type { Runner } from './runners/runner.js';
import { Attempt, AttemptContext, type AttemptOwner, type StopCause } from './running-attempt.js';
import { monotonic } from './worker-clock.js';
import type { WorkerHooks } from './worker-hooks.js';
import type { WorkerLog } from './worker-log.js';
import type { ResolvedWorkerOptions } from './worker-options.js';

/** How long a report waits until the attempt's log and progress are sent. */
const FLUSH_PATIENCE_MS = 5_000;
/** How long it rests before steps are added that could not be. */
const ADD_AGAIN_MS = 50;
const MOST_ADD_REST_MS = 2_000;

interface ExecutorParts {
  readonly gateway: WorkerGateway;
  readonly runners: readonly Runner[];
  readonly options: ResolvedWorkerOptions;
  readonly hooks: WorkerHooks;
  readonly log: WorkerLog;
  readonly onWarning: (warning: PunctualError) => void;
  /** The server's clock. */
  readonly clock: Pick<Clock, 'now'>;
  /** Called once per attempt, when its result is known and its log is sent. */
  readonly onResult: (attempt: Attempt, result: SizedResult) => void;
  /** Called when a slot becomes free, before the result is reported. */
  readonly onSlotFree: () => void;
}

/** Runs attempts: takes their slots, calls their runners, tells them to stop, and abandons those that do not stop. */
export class Executor implements AttemptOwner {
  /** Set while `WorkerRuntime.run()` owns the process. */
  guard: ProcessGuard | null = null;
  readonly #parts: ExecutorParts;
  readonly #runners: ReadonlyMap<TargetType, Runner>;
  readonly #deadlines = new Deadlines();
  #busy = 0;
  #lastTime = { ms: Number.NaN, text: '' };

  constructor(parts: ExecutorParts) {
    this.#parts = parts;
    void lookForTracing();
    this.#runners = new Map(parts.runners.map((runner) => [runner.target, runner]));
  }

  get shared(): boolean {
    return this.#parts.options.shared;
  }

  /** Slots in use. */
  get busy(): number {
    return this.#busy;
  }

  /** Takes a slot for an attempt that will be started. */
  accept(assignment: Assignment): Attempt {
    this.#busy += 1;
    return new Attempt(assignment, this);
  }

  /** Starts an accepted attempt, unless it was told to stop meanwhile. */
  start(attempt: Attempt): void {
    if (attempt.phase !== 'accepted') return;
    const { clock, hooks } = this.#parts;
    attempt.phase = 'running';
    const now = Math.floor(clock.now());
    attempt.startedAt = this.#timeText(now);
    attempt.trace = traceAttempt(attempt.assignment, now);
    attempt.startedMs = monotonic.now();
    attempt.dueAt = attempt.startedMs + attempt.assignment.timeoutMs;
    this.#deadlines.add(attempt);
    hooks.started(attempt.assignment);
    try {
      const guard = this.#runsUserCode(attempt) ? this.guard : undefined;
      const returned = guard ? guard.run(attempt, () => this.#run(attempt)) : this.#run(attempt);
      if (!isThenable(returned)) this.end(attempt, { kind: 'returned', value: returned });
      else {
        returned.then(
          (value) => this.end(attempt, { kind: 'returned', value }),
          (thrown) => this.end(attempt, { kind: 'threw', thrown }),
        );
      }
    } catch (thrown) {
      this.end(attempt, { kind: 'threw', thrown });
    }
  }

  /**
   * Tells an attempt to stop: aborts its signal now, and abandons it if it has not ended after the grace period.
   * False when it has ended or was told before.
   */
  stop(attempt: Attempt, cause: StopCause): boolean {
    if (attempt.phase === 'accepted') {
      attempt.abort(cause);
      this.end(attempt, { kind: 'threw', thrown: attempt.signal.reason });
      return true;
    }
    if (attempt.phase !== 'running') return false;
    attempt.phase = 'stopping';
    this.#deadlines.remove(attempt);
    attempt.dueAt = monotonic.now() + this.#parts.options.stopGraceMs;
    this.#deadlines.add(attempt);
    attempt.abort(cause);
    return true;
  }

  /** Settles the result of an attempt; what its handler does afterwards has no effect. */
  end(attempt: Attempt, ending: Ending): void {
    if (attempt.phase === 'ended') return;
    attempt.phase = 'ended';
    this.#deadlines.remove(attempt);
    const { maxResultBytes, maxErrorBytes } = this.#parts.options;
    const isShared = this.#runsUserCode(attempt);
    const sized = resultOf(attempt, ending, { maxResultBytes, maxErrorBytes, isShared });
    if (attempt.trace) endTrace(attempt.trace, sized.result);
    this.#tell(attempt, ending, sized);
    // What an attempt has started uses the machine until it is gone, however the attempt has ended.
    const { gone } = attempt;
    const isLeft = gone !== undefined;
    if (isLeft) void gone.then(() => this.#freeSlot());
    else this.#busy -= 1;
    if (!attempt.logs && !attempt.progress) {
      this.#parts.onResult(attempt, sized);
      if (!isLeft) this.#parts.onSlotFree();
      return;
    }
    if (!isLeft) this.#parts.onSlotFree();
    void this.#flush(attempt).then(() => this.#parts.onResult(attempt, sized));
  }

  expired(attempt: Attempt): void {
    if (attempt.phase === 'running') this.stop(attempt, 'timeout');
    else this.end(attempt, { kind: 'abandoned' });
  }

  /** Drops all deadlines when the worker ends. */
  close(): void {
    this.#deadlines.clear();
  }

  openLog(attempt: Attempt): LogSender {
    const { gateway, clock, options } = this.#parts;
    const { jobId, token } = attempt.assignment;
    return new LogSender(
      (lines) =>
        gateway.log(jobId, token, { fence: attempt.fence, lines }).then(
          (): LogDelivery => 'stored',
          (error) => this.#notDelivered(attempt, error),
        ),
      clock,
      options.maxLogBytes,
    );
  }

  openProgress(attempt: Attempt): ProgressSender {
    const { jobId, token } = attempt.assignment;
    return new ProgressSender(async (latest) => {
      try {
        await this.#parts.gateway.progress(jobId, token, { fence: attempt.fence, ...latest });
      } catch (error) {
        this.#notDelivered(attempt, error);
      }
    });
  }

  /** Adds steps, again and again while no node can: what was added by a request whose answer was lost is found then. */
  async addSteps(attempt: Attempt, workflow: string, addition: StepAddition): Promise<AddedSteps> {
    const { gateway } = this.#parts;
    const { signal } = attempt;
    const options = { signal, traceparent: attempt.trace?.traceparent };
    for (let restMs = ADD_AGAIN_MS; ; restMs = Math.min(2 * restMs, MOST_ADD_REST_MS)) {
      signal.throwIfAborted();
      try {
        return await gateway.addSteps(workflow, attempt.assignment.token, addition, options);
      } catch (thrown) {
        if (signal.aborted) throw signal.reason;
        const error = asPunctualError(thrown);
        if (error.code === 'STALE_FENCE') this.stop(attempt, 'stale');
        if (error.status !== 503) throw error;
      }
      await pause(restMs, signal);
    }
  }

  #freeSlot(): void {
    this.#busy -= 1;
    this.#parts.onSlotFree();
  }

  /** Tells the log and the program how an attempt ended; neither has an effect on it. */
  #tell(attempt: Attempt, ending: Ending, { result }: SizedResult): void {
    const { hooks, log } = this.#parts;
    if (result.outcome === 'handed-on') return;
    if (result.outcome !== 'succeeded') log.unsuccessful(attempt, result);
    else if (!hooks.watchesAttempts) return;
    hooks.ended(attempt, ending, result);
  }

  /** The time as text; attempts that start in the same millisecond share it. */
  #timeText(ms: number): string {
    if (ms !== this.#lastTime.ms) this.#lastTime = { ms, text: new Date(ms).toISOString() };
    return this.#lastTime.text;
  }

  #runsUserCode({ assignment }: Attempt): boolean {
    const runner = this.#runners.get(assignment.target.type);
    return this.#parts.options.middleware.length > 0 || (runner?.runsUserCode ?? false);
  }

  #run(attempt: Attempt): unknown {
    return attempt.trace ? attempt.trace.run(() => this.#call(attempt)) : this.#call(attempt);
  }

  #call(attempt: Attempt): unknown {
    const runner = this.#runners.get(attempt.assignment.target.type);
    if (!runner) {
      const type = attempt.assignment.target.type;
      throw new PermanentError(`This worker does not run ${type} targets.`, { code: 'UNKNOWN_TARGET' });
    }
    const context = new AttemptContext(attempt);
    const { options, log } = this.#parts;
    if (options.middleware.length === 0) return runner.run(attempt.assignment, context, attempt);
    return runThrough(
      options.middleware,
      context,
      () => runner.run(attempt.assignment, context, attempt),
      (message) => log.mistake(message),
    );
  }

  /** Handles the failure of a log or progress request; an answer that the attempt is stale is an order to stop. */
  #notDelivered(attempt: Attempt, thrown: unknown): LogDelivery {
    const error = asPunctualError(thrown);
    if (error.code === 'STALE_FENCE' || error.code === 'JOB_ENDED') this.stop(attempt, 'stale');
    else this.#parts.onWarning(error);
    return error.status === 503 ? 'later' : 'refused';
  }

  async #flush(attempt: Attempt): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, FLUSH_PATIENCE_MS);
    });
    await Promise.race([
      Promise.all([attempt.logs?.flush(FLUSH_PATIENCE_MS), attempt.progress?.flush()]),
      enough,
    ]);
    clearTimeout(timer);
  }
}

function endTrace(trace: AttemptTrace, result: AttemptResult): void {
  trace.end(result.outcome, 'error' in result ? (result.error ?? null) : null);
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return (
    typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'
  );
}
