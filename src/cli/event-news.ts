import { setTimeout as sleep } from 'node:timers/promises';
import { listenToEvents } from '../client/events.js';
import type { EventFilter } from '../core/events.js';
import type { Transport } from '../transport/transport.js';

/** Reads again at most this often. */
const MIN_PAUSE_MS = 250;
/** Reads again at least this often: ages grow, and not everything that can change is an event. */
const MAX_PAUSE_MS = 10_000;
/** From so many events a second on, reading once a second is cheaper than being told. */
const TOO_MANY = 100;
const REST_MS = 30_000;

/**
 * Tells a command that shows something when to read it again, instead of asking every moment. Nodes of an older version
 * have no events, and a cluster may have too many of them; then `next` says so, and the command polls.
 */
export class EventNews {
  readonly #api: Transport;
  readonly #filter: EventFilter;
  readonly #end = new AbortController();
  readonly #signal: AbortSignal;
  #isLive = false;
  #hasNews = false;
  #wake = new AbortController();
  #readAt = performance.now();

  constructor(api: Transport, filter: EventFilter, signal: AbortSignal) {
    this.#api = api;
    this.#filter = filter;
    this.#signal = signal;
    signal.addEventListener('abort', this.close, { once: true });
    if (signal.aborted) this.close();
    else void this.#listen();
  }

  /**
   * Waits until something has happened, or for a while, at most `mostMs`; false, without waiting, if it is not told what happens. Rejects
   * when the command is to end.
   */
  async next(mostMs = MAX_PAUSE_MS): Promise<boolean> {
    if (!this.#isLive) return false;
    await this.#sleep(this.#hasNews ? 0 : Math.min(mostMs, MAX_PAUSE_MS));
    await sleep(Math.max(0, this.#readAt + MIN_PAUSE_MS - performance.now()), undefined, {
      signal: this.#end.signal,
    });
    this.#hasNews = false;
    this.#readAt = performance.now();
    return true;
  }

  readonly close = (): void => {
    this.#signal.removeEventListener('abort', this.close);
    this.#isLive = false;
    this.#end.abort();
  };

  async #sleep(ms: number): Promise<void> {
    this.#wake = new AbortController();
    const signal = AbortSignal.any([this.#end.signal, this.#wake.signal]);
    await sleep(ms, undefined, { signal }).catch((error: unknown) => {
      if (this.#end.signal.aborted) throw error;
    });
  }

  async #listen(): Promise<void> {
    while (!this.#end.signal.aborted) {
      try {
        await this.#listenWhileFew();
      } catch {
        // Refused, or not known there: the command polls from now on.
        this.#isLive = false;
        return;
      }
      this.#isLive = false;
      this.#wake.abort();
      await sleep(REST_MS, undefined, { signal: this.#end.signal, ref: false }).catch(() => undefined);
    }
  }

  /** Resolves when too much happens to be told of all of it. */
  async #listenWhileFew(): Promise<void> {
    let second = performance.now();
    let count = 0;
    for await (const _event of listenToEvents(this.#api, { ...this.#filter, signal: this.#end.signal })) {
      this.#isLive = true;
      this.#hasNews = true;
      this.#wake.abort();
      const now = performance.now();
      if (now - second >= 1_000) {
        second = now;
        count = 0;
      }
      count += 1;
      if (count > TOO_MANY) return;
    }
  }
}
