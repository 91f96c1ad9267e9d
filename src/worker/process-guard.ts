import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attempt } from './running-attempt.js';

/**
 * Keeps handlers from ending the process that they share with other jobs. The asynchronous context tells which
 * attempt a call of `process.exit()`, an uncaught exception or an unhandled rejection came from; that attempt fails.
 * Those that come from elsewhere end the process as Node would.
 *
 * It cannot prevent what does not pass through JavaScript: `process.abort()`, signals, running out of memory.
 */
export class ProcessGuard {
  readonly #context = new AsyncLocalStorage<Attempt>();
  readonly #onBlame: (attempt: Attempt, thrown: unknown) => void;
  #exit: typeof process.exit | null = null;

  /** `onBlame` is called with the attempt that caused the error; that attempt may have ended already. */
  constructor(onBlame: (attempt: Attempt, thrown: unknown) => void) {
    this.#onBlame = onBlame;
  }

  /** Calls `work` in an asynchronous context that belongs to the attempt. */
  run<T>(attempt: Attempt, work: () => T): T {
    return this.#context.run(attempt, work);
  }

  /** Starts to guard the process. */
  install(): void {
    this.#exit = process.exit;
    process.exit = this.#guardedExit;
    process.on('uncaughtException', this.#onUncaught);
    process.on('unhandledRejection', this.#onRejection);
  }

  /** Restores the process as it was. */
  uninstall(): void {
    if (this.#exit && process.exit === this.#guardedExit) process.exit = this.#exit;
    process.off('uncaughtException', this.#onUncaught);
    process.off('unhandledRejection', this.#onRejection);
  }

  readonly #guardedExit = ((code?: number | string | null) => {
    const attempt = this.#context.getStore();
    if (!attempt) return this.#exit!(code);
    const error = new Error(
      `The handler called process.exit(${code ?? ''}), which would end every other job too.`,
    );
    this.#onBlame(attempt, error);
    // Callers of process.exit() do not expect it to return.
    throw error;
  }) as typeof process.exit;

  readonly #onUncaught = (thrown: unknown): void => {
    const attempt = this.#context.getStore();
    if (attempt) this.#onBlame(attempt, thrown);
    else this.#passOn('uncaughtException', thrown);
  };

  readonly #onRejection = (reason: unknown): void => {
    const attempt = this.#context.getStore();
    if (attempt) this.#onBlame(attempt, reason);
    else this.#passOn('unhandledRejection', reason);
  };

  /** The error came from no handler: if nobody else listens, it ends the process as if there were no guard. */
  #passOn(event: 'uncaughtException' | 'unhandledRejection', thrown: unknown): void {
    if (process.listenerCount(event) > 1) return;
    this.uninstall();
    process.nextTick(() => {
      throw thrown;
    });
  }
}
