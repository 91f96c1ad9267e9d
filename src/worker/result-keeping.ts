import type { PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import { Loop } from '../core/loop.js';
import type { AttemptResult, FencedJob } from '../core/wire.js';
import { asPunctualError } from './failure.js';
import { LeftResults } from './left-results.js';
import { ResultStore } from './result-store.js';

/** A result that is found undelivered twice, so far apart, is kept. */
const LOOK_EVERY_MS = 500;
/** While reports fail results are kept as they come, in portions of this. */
const GATHER_MS = 50;

export interface ResultKeepingParts {
  readonly folder: string;
  readonly gateway: Pick<WorkerGateway, 'report'>;
  /** Everything that ended and that no leader has answered yet. */
  readonly undelivered: () => Iterable<AttemptResult>;
  readonly onWarning: (warning: PunctualError) => void;
  /** Aborts when nothing more may be sent. */
  readonly signal: AbortSignal;
}

/**
 * Decides when results go to disk. A scheduler that answers promptly costs nothing: looking now and then is
 * all that happens. Once a report fails, or is not answered for a moment, everything undelivered is kept, and
 * what follows as soon as it ends, until all is answered again. The end of the process, however it comes
 * about short of a kill, keeps the rest.
 */
export class ResultKeeping {
  readonly #parts: ResultKeepingParts;
  readonly #store: ResultStore;
  readonly #left: LeftResults;
  readonly #loop: Loop;
  /** What the last look found. */
  #seen = new Set<AttemptResult>();
  /** Whether the scheduler is away, as far as is known. */
  #failing = false;
  readonly #onExit = () => this.keepNow();

  /** Opens the folder; throws when another worker has it or it cannot be written. */
  constructor(parts: ResultKeepingParts) {
    const { folder, gateway, onWarning, signal } = parts;
    this.#parts = parts;
    this.#store = ResultStore.open(folder);
    this.#left = new LeftResults({ gateway, store: this.#store, onWarning, signal });
    this.#loop = new Loop({
      name: 'results',
      everyMs: LOOK_EVERY_MS,
      pass: () => this.#runOnce(),
      onError: (_name, error) => onWarning(asPunctualError(error)),
    });
    process.on('exit', this.#onExit);
    this.#loop.start();
  }

  /** How many results are on disk. */
  get size(): number {
    return this.#store.size;
  }

  /**
   * The session of the worker that had the folder before. Results on their way speak for it; it is known to be
   * over, and named here, only when they are through.
   */
  get endedSession(): string {
    return this.#left.areDelivered ? this.#store.previousSession : '';
  }

  /** Delivers what that worker left: resolves when it is answered, or when a first try has failed. */
  deliverLeft(): Promise<void> {
    return this.#left.deliver();
  }

  /** Notes the session that further results are made in. */
  noteSession(workerId: string): void {
    this.#store.noteSession(workerId);
    this.#loop.wake();
  }

  /** Notes that a report failed. */
  failed(): void {
    if (this.#failing) return;
    this.#failing = true;
    this.#loop.wake();
  }

  /** Notes that the report about an attempt was answered. */
  answered(attempt: FencedJob): void {
    this.#failing = false;
    this.#store.release(attempt);
  }

  /** Keeps everything before it returns. */
  keepNow(): void {
    try {
      this.#store.keepNow(this.#parts.undelivered());
    } catch (error) {
      this.#parts.onWarning(asPunctualError(error));
    }
  }

  /** Looks no more, and lets go of the folder. */
  async stop(end: 'in-order' | 'at-once'): Promise<void> {
    process.off('exit', this.#onExit);
    await this.#loop.stop();
    try {
      this.#store.close(end);
    } catch (error) {
      this.#parts.onWarning(asPunctualError(error));
    }
  }

  async #runOnce(): Promise<number> {
    const found = [...this.#parts.undelivered()];
    const due = this.#failing ? found : found.filter((result) => this.#seen.has(result));
    this.#seen = new Set(found);
    await this.#store.tidy();
    await this.#store.keep(due);
    return this.#failing ? GATHER_MS : LOOK_EVERY_MS;
  }
}
