import { pause } from './pause.js';

/** After a heartbeat that got no answer the next one follows sooner, within the worker's timeout. */
const RETRY_MS = 500;

export interface HeartbeatLoopParts {
  /** Sends one heartbeat and deals with its answer; rejects when there was none. */
  readonly beat: (signal: AbortSignal) => Promise<void>;
  readonly intervalMs: () => number;
  /** How long one heartbeat may take before it is given up and sent again. */
  readonly limitMs: () => number;
}

/**
 * Sends heartbeats at their interval, or at once when woken. Its only ties to the rest of the worker are the
 * functions it is given, so that it can move to a thread of its own.
 */
export class HeartbeatLoop {
  readonly #parts: HeartbeatLoopParts;
  readonly #stopped = new AbortController();
  #sleep = new AbortController();
  #ended: Promise<void> | null = null;

  constructor(parts: HeartbeatLoopParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#ended ??= this.#run();
  }

  /** Sends a heartbeat now instead of when its time comes. */
  wake(): void {
    this.#sleep.abort();
  }

  /** Resolves when no heartbeat is on its way any more. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    this.wake();
    await this.#ended;
  }

  async #run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      this.#sleep = new AbortController();
      const answered = await this.#beatOnce();
      const interval = this.#parts.intervalMs();
      const restMs = answered ? interval : Math.min(RETRY_MS * (0.5 + Math.random()), interval);
      if (!this.#stopped.signal.aborted) await pause(restMs, this.#sleep.signal);
    }
  }

  async #beatOnce(): Promise<boolean> {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), this.#parts.limitMs());
    const onStop = () => limit.abort();
    this.#stopped.signal.addEventListener('abort', onStop, { once: true });
    try {
      await this.#parts.beat(limit.signal);
      return true;
    } catch {
      return false;
    } finally {
      clearTimeout(timer);
      this.#stopped.signal.removeEventListener('abort', onStop);
    }
  }
}
