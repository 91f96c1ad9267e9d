import { AsyncLocalStorage } from 'node:async_hooks';
import type { Attempt } from './running-attempt.js';

/**
 * Keeps handlers from ending the process they share with other jobs. It knows from the asynchronous context
 * which attempt a call of `process.exit()`, an exception nobody caught or a rejection nobody handled came
 * from, and fails that attempt. What comes from elsewhere ends the process as Node would have done.
 *
 * It cannot hold off what does not pass through JavaScript: `process.abort()`, signals, running out of memory.
 */
export class ProcessGuard {
  readonly #context = new AsyncLocalStorage<Attempt>();
  readonly #onBlame: (attempt: Attempt, thrown: unknown) => void;
  #exit: typeof process.exit | null = null;

  /** `onBlame` is told which attempt did what; the attempt may have ended already. */
  constructor(onBlame: (attempt: Attempt, thrown: unknown) => void) {
    this.#onBlame = onBlame;
  }

  /** Calls `work` such that everything it sets going is known to belong to the attempt. */
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

  /** Puts everything back as it was. */
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
    // Whoever calls process.exit() does not expect it to return.
    throw error;
  }) as typeof process.exit;

  readonly #onUncaught = (thrown: unknown): void => {
    const attempt = this.#context.getStore();
    if (attempt) this.#onBlame(attempt, thrown);
    else this.#giveBack('uncaughtException', thrown);
  };

  readonly #onRejection = (reason: unknown): void => {
    const attempt = this.#context.getStore();
    if (attempt) this.#onBlame(attempt, reason);
    else this.#giveBack('unhandledRejection', reason);
  };

  /** Not a handler's doing: if nobody else listens, Node decides, as if the guard were not there. */
  #giveBack(event: 'uncaughtException' | 'unhandledRejection', thrown: unknown): void {
    if (process.listenerCount(event) > 1) return;
    this.uninstall();
    process.nextTick(() => {
      throw thrown;
    });
  }
}
