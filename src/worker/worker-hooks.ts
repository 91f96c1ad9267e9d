import { asPunctualError, type PunctualError } from '../core/errors.js';
import { PermanentError } from '../core/task.js';
import type { Assignment, AttemptResult } from '../core/wire.js';
import type { Ending } from './attempt-result.js';
import { type Attempt, stopReason } from './running-attempt.js';
import { monotonic } from './worker-clock.js';
import type { EndedAttempt, WorkerEvents } from './worker-options.js';

/** A result that ends its attempt; one that was handed on goes on. */
export type EndResult = Exclude<AttemptResult, { readonly outcome: 'handed-on' }>;

/**
 * Calls the callbacks of the program. They may throw or reject; that has no effect on the worker and its attempts, and
 * told to the log and to `onWarning`.
 */
export class WorkerHooks {
  readonly #events: WorkerEvents;
  readonly #onThrown: (hook: string, thrown: unknown) => void;

  constructor(events: WorkerEvents, onThrown: (hook: string, thrown: unknown) => void) {
    this.#events = events;
    this.#onThrown = onThrown;
  }

  /** Whether a callback wants to know of attempts that succeed. */
  get watchesAttempts(): boolean {
    return this.#events.onAttempt !== undefined || this.#events.onJobEnded !== undefined;
  }

  registered(workerId: string): void {
    if (this.#events.onRegistered) this.#call('onRegistered', () => this.#events.onRegistered?.(workerId));
  }

  started(assignment: Assignment): void {
    if (this.#events.onJobStarted) this.#call('onJobStarted', () => this.#events.onJobStarted?.(assignment));
  }

  ended(attempt: Attempt, ending: Ending, result: EndResult): void {
    const { onJobEnded, onAttempt, onError } = this.#events;
    if (!onJobEnded && !onAttempt && !onError) return;
    const { outcome } = result;
    const error = ('error' in result ? result.error : undefined) ?? null;
    this.#call('onJobEnded', () => this.#events.onJobEnded?.(attempt.assignment, outcome, error));
    if (!onAttempt && !onError) return;
    const ended = summaryOf(attempt, outcome, error);
    this.#call('onAttempt', () => this.#events.onAttempt?.(ended));
    if (outcome !== 'failed' && outcome !== 'timed-out') return;
    this.#call('onError', () => this.#events.onError?.(thrownIn(attempt, ending, ended), ended));
  }

  reported(assignment: Assignment, answer: 'accepted' | 'stale' | 'refused'): void {
    if (!this.#events.onJobReported) return;
    this.#call('onJobReported', () => this.#events.onJobReported?.(assignment, answer));
  }

  warning(warning: PunctualError): void {
    if (this.#events.onWarning) this.#call('onWarning', () => this.#events.onWarning?.(warning));
  }

  #call(hook: keyof WorkerEvents, call: () => unknown): void {
    try {
      const returned = call();
      if (returned instanceof Promise) returned.catch((thrown) => this.#failed(hook, thrown));
    } catch (thrown) {
      this.#failed(hook, thrown);
    }
  }

  #failed(hook: keyof WorkerEvents, thrown: unknown): void {
    this.#onThrown(hook, thrown);
    if (hook !== 'onWarning') this.warning(asPunctualError(thrown));
  }
}

function summaryOf(
  { assignment, startedMs }: Attempt,
  outcome: EndedAttempt['outcome'],
  error: EndedAttempt['error'],
): EndedAttempt {
  const { jobId, tenant, task, queue, attempt, fence } = assignment;
  const durationMs = startedMs === null ? 0 : monotonic.now() - startedMs;
  return { jobId, tenant, task, queue, attempt, fence, outcome, error, durationMs };
}

/** The very value that was thrown, for reporters of errors; an error of the worker's own if nothing was. */
function thrownIn({ stopCause, assignment }: Attempt, ending: Ending, { error }: EndedAttempt): unknown {
  if (stopCause) return stopReason(stopCause, assignment);
  if (ending.kind === 'threw') return ending.thrown;
  const { message, code } = error ?? { message: 'The attempt failed.' };
  return new PermanentError(message, code === undefined ? {} : { code });
}
