import { asPunctualError, type PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import { Loop } from '../core/loop.js';
import type { AttemptResult, FencedJob } from '../core/wire.js';
import { Reporter } from './reporter.js';
import { FolderInUseError, ResultStore } from './result-store.js';

/** A result that is found undelivered twice, so far apart, is kept. */
const LOOK_EVERY_MS = 500;
/** While reports fail results are kept as they come, in portions of this. */
const GATHER_MS = 50;

interface ResultKeeperParts {
  readonly folder: string;
  readonly gateway: Pick<WorkerGateway, 'report' | 'triesAtOnce'>;
  /** Everything that ended and that no leader has answered yet. */
  readonly undelivered: () => Iterable<AttemptResult>;
  readonly onWarning: (warning: PunctualError) => void;
  /** Aborts when nothing more may be sent. */
  readonly signal: AbortSignal;
}

/** The folder once it is open, and what was found there. */
interface Opened {
  readonly store: ResultStore;
  readonly left: LeftResults;
}

/**
 * Decides when results go to disk. A scheduler that answers promptly costs nothing: looking now and then is
 * all that happens. Once a report fails, or is not answered for a moment, everything undelivered is kept, and
 * what follows as soon as it ends, until a report is answered again. The end of the process, however it comes
 * about short of a kill, keeps the rest.
 */
export class ResultKeeper {
  readonly #parts: ResultKeeperParts;
  readonly #loop: Loop;
  /** Null while another worker has the folder, e.g. one that ends what it runs after its supervisor was killed. */
  #opened: Opened | null = null;
  #session = '';
  /** What the last look found. */
  #seen = new Set<AttemptResult>();
  /** Whether the scheduler is away, as far as is known. */
  #failing = false;
  readonly #onExit = () => this.keepNow();

  constructor(parts: ResultKeeperParts) {
    this.#parts = parts;
    this.#loop = new Loop({
      name: 'results',
      everyMs: LOOK_EVERY_MS,
      pass: () => this.#runOnce(),
      onError: (_name, error) => parts.onWarning(asPunctualError(error)),
    });
  }

  /**
   * Opens the folder and delivers what the worker before left there: resolves when that is answered, or when a
   * first try has failed. Throws when the folder can never be used; one that is in use is opened later.
   */
  async start(): Promise<void> {
    try {
      this.#opened = this.#open();
    } catch (error) {
      if (!(error instanceof FolderInUseError)) throw error;
    }
    process.on('exit', this.#onExit);
    this.#loop.start();
    await this.#opened?.left.deliver();
  }

  /** How many results are on disk. */
  get size(): number {
    return this.#opened?.store.size ?? 0;
  }

  /**
   * The session of the worker that had the folder before. Results on their way speak for it; it is known to be
   * over, and named here, only when they are through.
   */
  get endedSession(): string {
    return this.#opened?.left.areDelivered ? this.#opened.store.previousSession : '';
  }

  /** Notes the session that further results are made in. */
  noteSession(workerId: string): void {
    this.#session = workerId;
    this.#opened?.store.noteSession(workerId);
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
    this.#opened?.store.release(attempt);
  }

  /** Keeps everything before it returns. */
  keepNow(): void {
    this.#attempt(() => this.#opened?.store.keepNow(this.#parts.undelivered()));
  }

  /** Looks no more, and lets go of the folder. */
  async stop(end: 'in-order' | 'at-once'): Promise<void> {
    process.off('exit', this.#onExit);
    await this.#loop.stop();
    this.#attempt(() => this.#opened?.store.close(end));
  }

  #open(): Opened {
    const { folder, gateway, onWarning, signal } = this.#parts;
    const store = ResultStore.open(folder);
    return { store, left: new LeftResults({ gateway, store, onWarning, signal }) };
  }

  async #runOnce(): Promise<number> {
    if (!this.#opened) {
      this.#opened = this.#open();
      if (this.#session !== '') this.#opened.store.noteSession(this.#session);
      void this.#opened.left.deliver();
    }
    const { store } = this.#opened;
    const found = [...this.#parts.undelivered()];
    const due = this.#failing ? found : found.filter((result) => this.#seen.has(result));
    this.#seen = new Set(found);
    await store.tidy();
    await store.keep(due);
    return this.#failing ? GATHER_MS : LOOK_EVERY_MS;
  }

  #attempt(act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#parts.onWarning(asPunctualError(error));
    }
  }
}

/** Reports count by their fences, so the session matters little; its place in the path must be filled. */
const UNKNOWN_SESSION = '00000000-0000-0000-0000-000000000000';

interface LeftResultsParts {
  readonly gateway: Pick<WorkerGateway, 'report' | 'triesAtOnce'>;
  readonly store: ResultStore;
  readonly onWarning: (warning: PunctualError) => void;
  readonly signal: AbortSignal;
}

/**
 * Delivers the results that an earlier process with the same folder could not, under the session they were made
 * in: they count as long as their fence does, and that is until their session is declared dead.
 */
class LeftResults {
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
        send: (results) => gateway.report(store.previousSession || UNKNOWN_SESSION, { results }, signal),
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
