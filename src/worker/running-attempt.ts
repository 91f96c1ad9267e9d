import { assertNever, PunctualError } from '../core/errors.js';
import type { Execution } from '../core/execution.js';
import type { JobLog, MiddlewareContext } from '../core/task.js';
import type { Assignment, FencedJob } from '../core/wire.js';
import { buildAddition, type Spawn, type SpawnOptions } from '../core/workflow/workflow-builder.js';
import type { AddedSteps, StepAddition } from '../core/workflow.js';
import type { AttemptTrace } from '../transport/tracing.js';
import type { LogSender, ProgressSender } from './attempt-output.js';
import { Timed } from './deadlines.js';
import type { Stop } from './runners/runner.js';

/** Why an attempt should end before it is done. */
export type StopCause = 'leader' | 'stale' | 'timeout' | 'shutdown';

/** The phases of an attempt; in `stopping` it was told to stop, but its handler has not settled yet. */
type AttemptPhase = 'accepted' | 'running' | 'stopping' | 'ended';

/** What an attempt needs of the executor that runs it. */
export interface AttemptOwner {
  /** Whether results must name their tenant, because the worker serves all tenants. */
  readonly shared: boolean;
  expired(attempt: Attempt): void;
  openLog(attempt: Attempt): LogSender;
  openProgress(attempt: Attempt): ProgressSender;
  addSteps(attempt: Attempt, workflow: string, addition: StepAddition): Promise<AddedSteps>;
}

/**
 * One attempt in this worker. Tens of thousands of these are made a second, so the signal, the log and the progress
 * are created only when the handler uses them.
 */
export class Attempt extends Timed implements FencedJob, Stop {
  readonly assignment: Assignment;
  readonly jobId: string;
  readonly fence: number;
  /** The tenant of the job, if the result must name it. */
  readonly tenant: string | undefined;
  phase: AttemptPhase = 'accepted';
  /** When the handler was called, by the server's clock. */
  startedAt: string | undefined;
  /** The same on the process's monotonic clock; null before. */
  startedMs: number | null = null;
  stopCause: StopCause | null = null;
  /** The number of the first heartbeat that listed it; null before that. */
  listedIn: number | null = null;
  logs: LogSender | null = null;
  progress: ProgressSender | null = null;
  /** Null if the job is part of no trace and nobody records spans. */
  trace: AttemptTrace | null = null;
  execution: Execution | undefined;
  gone: Promise<void> | undefined;
  readonly #owner: AttemptOwner;
  #controller: AbortController | null = null;
  #listener: ((reason: unknown) => void) | null = null;

  constructor(assignment: Assignment, owner: AttemptOwner) {
    super();
    this.assignment = assignment;
    this.jobId = assignment.jobId;
    this.fence = assignment.fence;
    this.tenant = owner.shared ? assignment.tenant : undefined;
    this.#owner = owner;
  }

  /** At `dueAt` the attempt is told to stop; after it was told, it is abandoned then. */
  expire(): void {
    this.#owner.expired(this);
  }

  /** The handler's signal, created on first use. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.stopCause) this.#controller.abort(stopReason(this.stopCause, this.assignment));
    }
    return this.#controller.signal;
  }

  /** Aborts the signal; only the first call has an effect. */
  abort(cause: StopCause): void {
    if (this.stopCause) return;
    this.stopCause = cause;
    this.#controller?.abort(stopReason(cause, this.assignment));
    this.#listener?.(stopReason(cause, this.assignment));
  }

  get isTold(): boolean {
    return this.stopCause !== null;
  }

  get reason(): unknown {
    return this.stopCause === null ? undefined : stopReason(this.stopCause, this.assignment);
  }

  listen(listener: ((reason: unknown) => void) | null): void {
    this.#listener = listener;
  }

  openLog(): LogSender {
    this.logs ??= this.#owner.openLog(this);
    return this.logs;
  }

  openProgress(): ProgressSender {
    this.progress ??= this.#owner.openProgress(this);
    return this.progress;
  }

  /** Adds steps to the workflow of the attempt's job. */
  async spawn(build: Parameters<Spawn>[0], options?: SpawnOptions): ReturnType<Spawn> {
    const { workflow } = this.assignment;
    if (workflow === undefined) {
      const detail = 'Only a step of a workflow can add steps; this job is none. Submit a job instead.';
      throw new PunctualError('INVALID_REQUEST', detail);
    }
    const addition = await buildAddition(build, options);
    // Code of a handler that still runs after the attempt has ended adds nothing.
    if (this.phase === 'ended') throw stopReason('stale', this.assignment);
    const { jobId, fence } = this;
    return (await this.#owner.addSteps(this, workflow, { ...addition, by: { jobId, fence } })).jobs;
  }
}

/** The context that handlers and middleware get. Its getters create what is used, and can be destructured. */
export class AttemptContext implements MiddlewareContext {
  readonly #attempt: Attempt;

  constructor(attempt: Attempt) {
    this.#attempt = attempt;
  }

  get jobId(): string {
    return this.#attempt.jobId;
  }

  get tenant(): string {
    return this.#attempt.assignment.tenant;
  }

  get task(): string | null {
    return this.#attempt.assignment.task;
  }

  get queue(): string {
    return this.#attempt.assignment.queue;
  }

  get payload(): unknown {
    return this.#attempt.assignment.payload;
  }

  get attempt(): number {
    return this.#attempt.assignment.attempt;
  }

  get fence(): number {
    return this.#attempt.fence;
  }

  get signal(): AbortSignal {
    return this.#attempt.signal;
  }

  get traceparent(): string | undefined {
    return this.#attempt.trace?.traceparent;
  }

  get workflow(): string | undefined {
    return this.#attempt.assignment.workflow;
  }

  get spawn(): Spawn {
    const attempt = this.#attempt;
    return (build, options) => attempt.spawn(build, options);
  }

  get progress(): (fraction: number, message?: string) => Promise<void> {
    const attempt = this.#attempt;
    return async (fraction, message) => {
      // Code of a handler that still runs after the attempt has ended reports nothing.
      if (attempt.phase !== 'ended') await attempt.openProgress().report(fraction, message);
    };
  }

  get log(): JobLog {
    return this.#attempt.openLog().log;
  }
}

/** The value of `signal.reason` in a handler. */
export function stopReason(cause: StopCause, assignment: Assignment): PunctualError {
  switch (cause) {
    case 'leader':
      return new PunctualError(
        'ATTEMPT_STOPPED',
        'The job was cancelled, or this attempt no longer owns it.',
      );
    case 'stale':
      return new PunctualError('STALE_FENCE', 'A newer attempt owns the job, or the job has ended.');
    case 'timeout':
      return new PunctualError('TIMED_OUT', `The attempt took longer than ${assignment.timeoutMs} ms.`);
    case 'shutdown':
      return new PunctualError('ATTEMPT_STOPPED', 'The worker is being stopped at once.');
    default:
      return assertNever(cause);
  }
}
