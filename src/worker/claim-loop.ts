import { setImmediate as nextTurn } from 'node:timers/promises';
import { formatDuration } from '../core/duration.js';
import { asPunctualError, type PunctualError } from '../core/errors.js';
import { GrowingPause, pause } from '../transport/pause.js';
import { monotonic } from './worker-clock.js';

/** How long a claim waits for work at the scheduler. */
const WAIT_MS = 20_000;
/** An empty answer well before that is a scheduler that does not want to be asked just now. */
const EARLY_MS = 1_000;
/** Under load a claim is answered in less; so long a claim that is open when the worker drains is waited for. */
const LINGER_MS = 250;

/** So many jobs at once come when there are more of them: they are asked for before these are started. */
const MANY = 100;

/** What a claim brought. */
export interface Claimed {
  /** How much of it was news: attempts to start, or orders to stop. */
  readonly news: number;
  /** Starts what came and has its slots already. */
  start(): Promise<void>;
}

const NOTHING: Claimed = { news: 0, start: () => Promise.resolve() };

interface ClaimLoopParts {
  /** How many claims in a row may be refused by nodes that cannot serve before the loop pauses. */
  readonly triesAtOnce: number;
  readonly freeSlots: () => number;
  /** Asks for up to `max` jobs and takes them in. */
  readonly claim: (max: number, wait: string, signal: AbortSignal) => Promise<Claimed>;
  /** Called when a claim has failed and no other node is asked at once. */
  readonly onFailure: (error: PunctualError) => void;
}

/**
 * Keeps one claim open as long as there are free slots, for as many jobs as there are. Slots that become free
 * while a claim is open go into the next one, so claims grow with the load.
 */
export class ClaimLoop {
  readonly #parts: ClaimLoopParts;
  /** Aborts when no further claim may be opened. */
  readonly #closing = new AbortController();
  /** Aborts the claim that is open. */
  readonly #stopped = new AbortController();
  readonly #slotFreed = new Bell();
  readonly #growing: GrowingPause;
  /** Aborts the claim that is open, so that another one takes its place. */
  #renewal = new AbortController();
  #ended: Promise<void> | null = null;

  constructor(parts: ClaimLoopParts) {
    this.#parts = parts;
    this.#growing = new GrowingPause(50, 1_000, parts.triesAtOnce);
  }

  start(): void {
    this.#ended ??= this.#run();
  }

  /** Tells the loop that a slot may have become free. */
  slotFreed(): void {
    this.#slotFreed.ring();
  }

  /**
   * Asks anew, because another leader may not know of the open claim: it may wait at a node that hangs. If it
   * is not lost it gets a moment to be answered.
   */
  renew(): void {
    const renewal = this.#renewal;
    setTimeout(() => renewal.abort(), LINGER_MS).unref();
  }

  /**
   * Claims nothing more; resolves when the open claim has ended and what it brought has been started. An open
   * claim may have jobs on their way already, which would have to find another worker if it were cut off, so
   * it gets a moment to be answered.
   */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#slotFreed.ring();
    const lingering = setTimeout(() => this.#stopped.abort(), LINGER_MS);
    await this.#ended;
    clearTimeout(lingering);
  }

  /** Claims nothing more and drops the open claim. */
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
        // Handlers that end in the same turn make room for one claim together.
        await nextTurn();
        continue;
      }
      const claimed: Claimed = await (open ?? this.#claimOnce(freeSlots()));
      const asksOn = claimed.news >= MANY && freeSlots() >= MANY && !this.#closing.signal.aborted;
      open = asksOn ? this.#claimOnce(freeSlots()) : null;
      // What cannot be started must not keep the worker from asking for more.
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
      const tooEarly = claimed.news === 0 && !renewal.signal.aborted && monotonic.now() - askedAt < EARLY_MS;
      if (tooEarly) await pause(this.#growing.nextMs(), this.#closing.signal);
      else this.#growing.reset();
      return claimed;
    } catch (thrown) {
      if (!renewal.signal.aborted) await this.#failed(asPunctualError(thrown));
      return NOTHING;
    } finally {
      this.#stopped.signal.removeEventListener('abort', onStop);
    }
  }
}

/** Handlers that begin with long computations are started in portions of this, so that heartbeats get through. */
const PORTION_MS = 20;

/** Starts attempts in order, letting the event loop turn when starting them takes long. */
export async function startInPortions<T>(attempts: readonly T[], start: (attempt: T) => void): Promise<void> {
  let since = monotonic.now();
  for (const attempt of attempts) {
    start(attempt);
    if (monotonic.now() - since > PORTION_MS) {
      await nextTurn();
      since = monotonic.now();
    }
  }
}

/** Lets one waiter sleep until somebody rings; a ring with nobody waiting is kept. */
class Bell {
  #rung = false;
  #wake: (() => void) | null = null;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Resolves at the next ring, at once if one was missed. */
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
