import { assertNever, PunctualError } from '../core/errors.js';
import type { JobContext, JobLog } from '../core/task.js';
import type { Assignment, FencedJob } from '../core/wire.js';
import type { LogSender, ProgressSender } from './attempt-output.js';
import type { Timed } from './deadlines.js';

/** Why an attempt should end before it is done. */
export type StopCause = 'leader' | 'stale' | 'timeout' | 'shutdown';

/** `stopping` means: told to stop, but the handler has not settled yet. */
type AttemptPhase = 'accepted' | 'running' | 'stopping' | 'ended';

/** What an attempt needs of whoever runs it. */
export interface AttemptOwner {
  /** Whether its results must say whose they are, because it serves all tenants. */
  readonly shared: boolean;
  expired(attempt: Attempt): void;
  openLog(attempt: Attempt): LogSender;
  openProgress(attempt: Attempt): ProgressSender;
}

/**
 * One attempt in this worker. Made for tens of thousands a second: its signal, log and progress come into
 * being only when the handler touches them.
 */
export class Attempt implements FencedJob, Timed {
  readonly assignment: Assignment;
  readonly jobId: string;
  readonly fence: number;
  /** Whose job it is, where the result must say so. */
  readonly tenant: string | undefined;
  phase: AttemptPhase = 'accepted';
  /** When the handler was called, on the server's clock. */
  startedAt: string | undefined;
  /** When the attempt is told to stop, and once it was told, when it is given up. */
  dueAt = Number.POSITIVE_INFINITY;
  stopCause: StopCause | null = null;
  /** The first heartbeat that listed it; null before. */
  listedIn: number | null = null;
  logs: LogSender | null = null;
  progress: ProgressSender | null = null;
  readonly #owner: AttemptOwner;
  #controller: AbortController | null = null;

  constructor(assignment: Assignment, owner: AttemptOwner) {
    this.assignment = assignment;
    this.jobId = assignment.jobId;
    this.fence = assignment.fence;
    this.tenant = owner.shared ? assignment.tenant : undefined;
    this.#owner = owner;
  }

  expire(): void {
    this.#owner.expired(this);
  }

  /** The signal handlers see, made on first use. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.stopCause) this.#controller.abort(stopReason(this.stopCause, this.assignment));
    }
    return this.#controller.signal;
  }

  /** Aborts the signal for the first cause given. */
  abort(cause: StopCause): void {
    if (this.stopCause) return;
    this.stopCause = cause;
    this.#controller?.abort(stopReason(cause, this.assignment));
  }

  openLog(): LogSender {
    this.logs ??= this.#owner.openLog(this);
    return this.logs;
  }

  openProgress(): ProgressSender {
    this.progress ??= this.#owner.openProgress(this);
    return this.progress;
  }
}

/** The attempt as its handler sees it. Getters, so that what is not used is not made; all can be destructured. */
export class AttemptContext implements JobContext {
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

  get attempt(): number {
    return this.#attempt.assignment.attempt;
  }

  get fence(): number {
    return this.#attempt.fence;
  }

  get signal(): AbortSignal {
    return this.#attempt.signal;
  }

  get progress(): (fraction: number, message?: string) => Promise<void> {
    const attempt = this.#attempt;
    return async (fraction, message) => {
      // Leftovers of a handler that has ended have nothing to tell any more.
      if (attempt.phase !== 'ended') await attempt.openProgress().report(fraction, message);
    };
  }

  get log(): JobLog {
    return this.#attempt.openLog().log;
  }
}

/** What a handler finds as `signal.reason`. */
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
