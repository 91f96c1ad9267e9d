import type { Clock } from './clock.js';
import { formatDuration, parseDuration } from './duration.js';

/** At most `limit` starts in `perMs` on average, and at most `burst` at once. */
export interface Rate {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
}

/** A rate as the API speaks of it: `{"limit": 100, "per": "1s", "burst": 10}`. */
export interface RateView {
  readonly limit: number;
  readonly per: string;
  readonly burst?: number;
}

/** Rates are counted over a millisecond at least and 30 days at most. */
export const MAX_PER_MS = 30 * 86_400_000;
export const MAX_RATE_COUNT = 1_000_000;

/** What a rate must look like, to be said when it does not. */
export const RATE_RULE =
  'must be a number of starts and a duration, such as 100/1s: 1 to 1000000 starts, 1ms to 30d';

/** A rate as people write it, `100/1s`, or as the API speaks of it; null when it is none. */
export function readRate(input: string | RateView): RateView | null {
  const view = typeof input === 'string' ? parseRate(input) : input;
  if (view === null || !isCount(view.limit)) return null;
  const perMs = parseDuration(view.per);
  if (perMs === null || perMs < 1 || perMs > MAX_PER_MS) return null;
  return view.burst === undefined || isCount(view.burst) ? view : null;
}

/** A rate as people write it. */
export function formatRate({ limit, per }: RateView): string {
  return `${limit}/${per}`;
}

function parseRate(text: string): RateView | null {
  const [limit = '', per = '', more] = text.split('/');
  return /^\d{1,7}$/.test(limit) && more === undefined ? { limit: Number(limit), per } : null;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1 && value <= MAX_RATE_COUNT;
}

/** Starts of this span may come at once when a rate names no burst: enough that timers of a millisecond keep up. */
const DEFAULT_BURST_MS = 50;

export function defaultBurst(limit: number, perMs: number): number {
  return Math.max(1, Math.ceil((limit * DEFAULT_BURST_MS) / perMs));
}

/** A rate that was checked when it came in. */
export function rateOf(view: RateView): Rate {
  const perMs = parseDuration(view.per);
  if (perMs === null) throw new Error(`${view.per} is no duration`);
  return { limit: view.limit, perMs, burst: view.burst ?? defaultBurst(view.limit, perMs) };
}

export function rateView(rate: Rate): Required<RateView> {
  return { limit: rate.limit, per: formatDuration(rate.perMs), burst: rate.burst };
}

export function isSameRate(a: Rate | null, b: Rate | null): boolean {
  return a?.limit === b?.limit && a?.perMs === b?.perMs && a?.burst === b?.burst;
}

/**
 * A token bucket kept as one moment: when it will be full again. In any span of time t at most
 * `burst + limit × t / perMs` draws are let through, whoever holds the bucket, as long as that moment is handed on.
 *
 * A rate is about how much time has passed, so moments are those of the steady clock: one that can be set back would
 * keep a bucket empty for as long as it was set back. Only what is handed on is told on the database's clock.
 */
export class Bucket {
  private readonly intervalMs: number;

  constructor(
    readonly rate: Rate,
    private full: number,
  ) {
    this.intervalMs = rate.perMs / rate.limit;
  }

  /** A bucket whose past is not known: it lets one through at once and then keeps to the rate. */
  static drained(rate: Rate, now: number): Bucket {
    return new Bucket(rate, now + (rate.burst - 1) * (rate.perMs / rate.limit));
  }

  /**
   * A bucket as somebody else left it. None is ever more than empty, so a moment beyond that comes from another
   * rate, or another clock, and does not count.
   */
  static resumed(rate: Rate, fullAt: number, clock: Pick<Clock, 'now' | 'steady'>): Bucket {
    const fullInMs = Math.min(fullAt - clock.now(), rate.burst * (rate.perMs / rate.limit));
    return new Bucket(rate, clock.steady() + fullInMs);
  }

  /** When the bucket will be full again, on the database's clock. */
  fullAt(clock: Pick<Clock, 'now' | 'steady'>): number {
    return Math.ceil(clock.now() + this.full - clock.steady());
  }

  /** From when on the next draw is let through. */
  get opensAt(): number {
    return this.full - (this.rate.burst - 1) * this.intervalMs;
  }

  isOpen(now: number): boolean {
    return this.opensAt <= now;
  }

  draw(now: number): void {
    this.full = Math.max(now, this.full) + this.intervalMs;
  }

  /** Takes a draw back that came to nothing. */
  refund(): void {
    this.full -= this.intervalMs;
  }
}
