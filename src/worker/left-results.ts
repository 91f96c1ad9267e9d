import type { PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import type { AttemptResult, SessionKey } from '../core/wire.js';
import { Reporter } from './reporter.js';
import type { ResultStore } from './result-store.js';

/** Reports count by their fences, so the session matters little; its place in the path must be filled. */
const UNKNOWN_SESSION: SessionKey = { workerId: '00000000-0000-0000-0000-000000000000', shard: 0 };

export interface LeftResultsParts {
  readonly gateway: Pick<WorkerGateway, 'report' | 'triesAtOnce'>;
  readonly store: ResultStore;
  readonly onWarning: (warning: PunctualError) => void;
  readonly signal: AbortSignal;
}

/**
 * Delivers the results that an earlier process with the same folder could not, under the session they were made
 * in: they count as long as their fence does, and that is until their session is declared dead.
 */
export class LeftResults {
  readonly #parts: LeftResultsParts;
  #open: number;

  constructor(parts: LeftResultsParts) {
    this.#parts = parts;
    this.#open = parts.store.left.length;
  }

  /** Whether a leader has answered all of them, so that nothing speaks for their session any more. */
  get areDelivered(): boolean {
    return this.#open === 0;
  }

  /** Resolves when all are delivered or a report has failed; it is repeated from then on until it is answered. */
  deliver(): Promise<void> {
    const { gateway, store, onWarning, signal } = this.#parts;
    if (this.areDelivered) return Promise.resolve();
    return new Promise((resolve) => {
      const reporter = new Reporter<AttemptResult>({
        triesAtOnce: gateway.triesAtOnce,
        send: (results) => gateway.report(store.previousSession ?? UNKNOWN_SESSION, { results }, signal),
        onAnswered: (result) => {
          store.release(result);
          this.#open -= 1;
          if (this.areDelivered) resolve();
        },
        onFailure: (error) => {
          onWarning(error);
          resolve();
        },
        signal,
      });
      signal.addEventListener('abort', () => resolve(), { once: true });
      for (const result of store.left) reporter.add(result, { result, bytes: JSON.stringify(result).length });
    });
  }
}
