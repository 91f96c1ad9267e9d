import { asPunctualError, type PunctualError } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import { Loop } from '../core/loop.js';
import type { AttemptResult, FencedJob, SessionKey } from '../core/wire.js';
import { Reporter } from './reporter.js';
import { FolderInUseError, ResultStore } from './result-store.js';

/** How often undelivered results are looked for; one that is found twice in a row is kept. */
const LOOK_EVERY_MS = 500;
/** How long results are collected before they are written while reports fail. */
const GATHER_MS = 50;

interface ResultKeeperParts {
  readonly folder: string;
  readonly gateway: Pick<WorkerGateway, 'report' | 'triesAtOnce'>;
  /** All results that no leader has answered yet. */
  readonly undelivered: () => Iterable<AttemptResult>;
  readonly onWarning: (warning: PunctualError) => void;
  /** Aborts when nothing more may be sent. */
  readonly signal: AbortSignal;
}

/** The open folder, and the results that were found in it. */
interface Opened {
  readonly store: ResultStore;
  readonly left: LeftResults;
}

/**
 * Decides when results are written to disk. While reports are answered promptly nothing is written. When a report
 * fails or is not answered for a moment, all undelivered results are written, and further ones as soon as they exist,
 * until a report is answered again. When the process exits, the rest is written; only a kill prevents that.
 */
export class ResultKeeper {
  readonly #parts: ResultKeeperParts;
  readonly #loop: Loop;
  /** Null while another worker holds the folder, e.g. one that finishes its jobs after its supervisor was killed. */
  #opened: Opened | null = null;
  #session: SessionKey | null = null;
  /** The undelivered results of the last pass. */
  #seen = new Set<AttemptResult>();
  /** Whether the last report failed. */
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
   * Opens the folder and delivers the results that its previous holder left: resolves when they are answered, or when
   * the first report has failed. Throws when the folder cannot be used; a folder that another worker holds is opened
   * later.
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

  /** How many results are on the disk. */
  get size(): number {
    return this.#opened?.store.size ?? 0;
  }

  /**
   * The session of the previous holder of the folder; empty until its results are delivered, because they count only
   * while the session is not declared dead.
   */
  get endedSession(): string {
    return this.#opened?.left.areDelivered ? (this.#opened.store.previousSession?.workerId ?? '') : '';
  }

  /** Sets the session that further results belong to. */
  noteSession(session: SessionKey): void {
    this.#session = session;
    this.#opened?.store.noteSession(session);
    this.#loop.wake();
  }

  /** Records that a report failed. */
  failed(): void {
    if (this.#failing) return;
    this.#failing = true;
    this.#loop.wake();
  }

  /** Records that the report about an attempt was answered. */
  answered(attempt: FencedJob): void {
    this.#failing = false;
    this.#opened?.store.release(attempt);
  }

  /** Writes all undelivered results before it returns. */
  keepNow(): void {
    this.#attempt(() => this.#opened?.store.keepNow(this.#parts.undelivered()));
  }

  /** Ends the loop and releases the folder. */
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
      if (this.#session) this.#opened.store.noteSession(this.#session);
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

/** A report counts by its fences, whatever the session; the path needs some id. */
const UNKNOWN_SESSION: SessionKey = { workerId: '00000000-0000-0000-0000-000000000000', shard: 0 };

interface LeftResultsParts {
  readonly gateway: Pick<WorkerGateway, 'report' | 'triesAtOnce'>;
  readonly store: ResultStore;
  readonly onWarning: (warning: PunctualError) => void;
  readonly signal: AbortSignal;
}

/**
 * Delivers the results that an earlier process left in the folder, under the session they belong to. They count while
 * their fences are on record, which is until that session is declared dead.
 */
class LeftResults {
  readonly #parts: LeftResultsParts;
  #open: number;

  constructor(parts: LeftResultsParts) {
    this.#parts = parts;
    this.#open = parts.store.left.length;
  }

  /** Whether a leader has answered all of them. */
  get areDelivered(): boolean {
    return this.#open === 0;
  }

  /** Resolves when all are delivered or a report has failed; a failed report is repeated in the background. */
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
