import { setImmediate as nextIteration } from 'node:timers/promises';
import { formatDuration } from '../core/duration.js';
import { asPunctualError, type PunctualError } from '../core/errors.js';
import { GrowingPause, pause } from '../transport/pause.js';
import { monotonic } from './worker-clock.js';

/** How long a claim waits for work at the scheduler. */
const WAIT_MS = 20_000;
/** An empty answer sooner than this means that the scheduler does not want claims now, so a pause follows. */
const EARLY_MS = 1_000;
/** How long an open claim is waited for when the worker drains; under load claims are answered sooner. */
const LINGER_MS = 250;

/** An answer with this many jobs shows that more are waiting: the next claim is sent before these are started. */
const MANY = 100;

/** The jobs of one claim, which hold their slots already. */
export interface Claimed {
  /** How many attempts to start and new orders to stop the answer held. */
  readonly news: number;
  /** Whether it held only what was known: a new leader offers again what it cannot know to have arrived. */
  readonly isRepeated: boolean;
  /** Starts the attempts. */
  start(): Promise<void>;
}

/** A claim whose answer is empty or does not count. */
export const NOTHING: Claimed = { news: 0, isRepeated: false, start: () => Promise.resolve() };

interface ClaimLoopParts {
  /** How many claims in a row may fail because a node cannot serve before the loop pauses. */
  readonly triesAtOnce: number;
  readonly freeSlots: () => number;
  /** Claims up to `max` jobs and takes slots for them. */
  readonly claim: (max: number, wait: string, signal: AbortSignal) => Promise<Claimed>;
  /** Called when a claim has failed and a pause follows. */
  readonly onFailure: (error: PunctualError) => void;
}

/**
 * Keeps one claim open while there are free slots, for as many jobs as there are free slots. Slots that become free
 * meanwhile go into the next claim, so claims grow with the load.
 */
export class ClaimLoop {
  readonly #parts: ClaimLoopParts;
  /** Aborts when no further claim may be sent. */
  readonly #closing = new AbortController();
  /** Aborts the open claim for good. */
  readonly #stopped = new AbortController();
  readonly #slotFreed = new Bell();
  readonly #growing: GrowingPause;
  #wasRepeated = false;
  /** Aborts the open claim, so that a new one replaces it. */
  #renewal = new AbortController();
  #ended: Promise<void> | null = null;

  constructor(parts: ClaimLoopParts) {
    this.#parts = parts;
    this.#growing = new GrowingPause(50, 1_000, parts.triesAtOnce);
  }

  start(): void {
    this.#ended ??= this.#run();
  }

  /** Tells the loop that a slot may be free. */
  slotFreed(): void {
    this.#slotFreed.ring();
  }

  /**
   * Replaces the open claim after a change of leader: it may wait at a node that hangs, where the new leader does not
   * see it. It gets a moment to be answered.
   */
  renew(): void {
    const renewal = this.#renewal;
    setTimeout(() => renewal.abort(), LINGER_MS).unref();
  }

  /**
   * Sends no further claim; resolves when the open claim has ended and its jobs are started. The open claim gets a
   * moment to be answered: jobs may be on their way to this worker, and would have to be revoked if it were aborted.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#slotFreed.ring();
    const lingering = setTimeout(() => this.#stopped.abort(), LINGER_MS);
    await this.#ended;
    clearTimeout(lingering);
  }

  /** Sends no further claim and aborts the open one. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.close();
  }

  async #run(): Promise<void> {
    const { freeSlots } = this.#parts;
    let open: Promise<Claimed> | null = null;
    while (open || !this.#closing.signal.aborted) {
      if (!open && freeSlots() <= 0) {
        await this.#slotFreed.rung();
        // Handlers that end in the same turn of the event loop share one claim.
        await nextIteration();
        continue;
      }
      const claimed: Claimed = await (open ?? this.#claimOnce(freeSlots()));
      const claimsNow = claimed.news >= MANY && freeSlots() >= MANY && !this.#closing.signal.aborted;
      open = claimsNow ? this.#claimOnce(freeSlots()) : null;
      // Jobs that cannot be started must not end the loop.
      await claimed.start().catch(() => pause(this.#growing.nextMs(), this.#closing.signal));
    }
  }

  async #failed(error: PunctualError): Promise<void> {
    const pauseMs = this.#growing.nextMs(error);
    if (pauseMs > 0) this.#parts.onFailure(error);
    await pause(pauseMs, this.#closing.signal);
  }

  async #claimOnce(max: number): Promise<Claimed> {
    const askedAt = monotonic.now();
    const renewal = new AbortController();
    this.#renewal = renewal;
    const onStop = () => renewal.abort();
    this.#stopped.signal.addEventListener('abort', onStop, { once: true });
    if (this.#stopped.signal.aborted) onStop();
    try {
      const claimed = await this.#parts.claim(max, formatDuration(WAIT_MS), renewal.signal);
      const isFirstRepeat = claimed.isRepeated && !this.#wasRepeated;
      this.#wasRepeated = claimed.isRepeated;
      const isEarly = claimed.news === 0 && !renewal.signal.aborted && monotonic.now() - askedAt < EARLY_MS;
      if (!isEarly) this.#growing.reset();
      else if (!isFirstRepeat) await pause(this.#growing.nextMs(), this.#closing.signal);
      return claimed;
    } catch (thrown) {
      if (!renewal.signal.aborted) await this.#failed(asPunctualError(thrown));
      return NOTHING;
    } finally {
      this.#stopped.signal.removeEventListener('abort', onStop);
    }
  }
}

/** The event loop turns at least this often while attempts are started, so that slow starts do not block other work. */
const PORTION_MS = 20;

/** Starts attempts in order, and lets the event loop turn when that takes long. */
export async function startInPortions<T>(attempts: readonly T[], start: (attempt: T) => void): Promise<void> {
  let since = monotonic.now();
  // By index: an iterator would make an object for each attempt here.
  for (let i = 0; i < attempts.length; i++) {
    start(attempts[i]!);
    if (monotonic.now() - since > PORTION_MS) {
      await nextIteration();
      since = monotonic.now();
    }
  }
}

/** An event that one waiter awaits; a ring without a waiter is kept for the next one. */
class Bell {
  #rung = false;
  #wake: (() => void) | null = null;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Resolves at the next ring, or at once if there was one since the last call. */
  async rung(): Promise<void> {
    if (!this.#rung) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
      this.#wake = null;
    }
    this.#rung = false;
  }
}
