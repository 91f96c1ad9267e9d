import type { Clock } from './clock.js';
import { type Duration, formatDuration, parseDuration } from './duration.js';

/** At most `limit` starts in `perMs` on average, and at most `burst` at once. */
export interface Rate {
  readonly limit: number;
  readonly perMs: number;
  readonly burst: number;
}

/** A rate in the API: `{"limit": 100, "per": "1s", "burst": 10}`. */
export interface RateView {
  readonly limit: number;
  readonly per: Duration;
  readonly burst?: number;
}

/** A rate as users write it, e.g. `100/1s`: so many starts in this time. Programs know this type as `Rate`. */
export type RateText = `${number}/${Duration}`;

/** The longest period of a rate. */
export const MAX_PER_MS = 30 * 86_400_000;
/** The highest limit and the highest burst of a rate. */
export const MAX_RATE_COUNT = 1_000_000;

/** The message about a rate that is not valid. */
export const RATE_RULE =
  'must be a number of starts and a duration, such as 100/1s: 1 to 1000000 starts, 1ms to 30d';

/** Checks a rate, written as `100/1s` or as in the API; null when it is not valid. */
export function readRate(input: string | RateView): RateView | null {
  const view = typeof input === 'string' ? parseRate(input) : input;
  if (view === null || !isCount(view.limit)) return null;
  const perMs = parseDuration(view.per);
  if (perMs === null || perMs < 1 || perMs > MAX_PER_MS) return null;
  return view.burst === undefined || isCount(view.burst) ? view : null;
}

/** A rate as users write it: `100/1s`. */
export function formatRate({ limit, per }: RateView): RateText {
  return `${limit}/${per}`;
}

function parseRate(text: string): RateView | null {
  const [limit = '', per = '', more] = text.split('/');
  return /^\d{1,7}$/.test(limit) && more === undefined
    ? { limit: Number(limit), per: per as Duration }
    : null;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 1 && value <= MAX_RATE_COUNT;
}

/** The default burst allows the starts of this period at once, so that timers with a resolution of 1 ms keep up. */
const DEFAULT_BURST_MS = 50;

/** The burst of a rate that names none. */
export function defaultBurst(limit: number, perMs: number): number {
  return Math.max(1, Math.ceil((limit * DEFAULT_BURST_MS) / perMs));
}

/** The rate of a view that was checked before. */
export function rateOf(view: RateView): Rate {
  const perMs = parseDuration(view.per);
  if (perMs === null) throw new Error(`${view.per} is no duration`);
  return { limit: view.limit, perMs, burst: view.burst ?? defaultBurst(view.limit, perMs) };
}

/** A rate as the API shows it. */
export function rateView(rate: Rate): Required<RateView> {
  return { limit: rate.limit, per: formatDuration(rate.perMs), burst: rate.burst };
}

/** Whether two rates are equal; null is no rate. */
export function isSameRate(a: Rate | null, b: Rate | null): boolean {
  return a?.limit === b?.limit && a?.perMs === b?.perMs && a?.burst === b?.burst;
}

/**
 * A token bucket, stored as one moment: when it will be full again. In any period t it allows at most
 * `burst + limit × t / perMs` draws. This also holds across leaders, because the moment is passed on to the next.
 *
 * Moments are on the steady clock: if a clock were set back, the bucket would stay empty for that long. Only the moment
 * that is passed on is on the database's clock.
 */
export class Bucket {
  private readonly intervalMs: number;

  constructor(
    readonly rate: Rate,
    private full: number,
  ) {
    this.intervalMs = rate.perMs / rate.limit;
  }

  /** A bucket of unknown history: it allows one draw at once and then keeps to the rate. */
  static drained(rate: Rate, now: number): Bucket {
    return new Bucket(rate, now + (rate.burst - 1) * (rate.perMs / rate.limit));
  }

  /**
   * A bucket that another leader has passed on. No bucket takes longer to fill than one that is empty, and as far in debt as
   * that leader left it; a later moment stems from another rate or another clock, and is limited to that.
   */
  static resumed(rate: Rate, fullAt: number, clock: Pick<Clock, 'now' | 'steady'>, debt = 0): Bucket {
    const fullInMs = Math.min(fullAt - clock.now(), (rate.burst + debt) * (rate.perMs / rate.limit));
    return new Bucket(rate, clock.steady() + fullInMs);
  }

  /** What the next leader goes on from. */
  mark(clock: Pick<Clock, 'now' | 'steady'>): { readonly fullAt: number; readonly debt: number } {
    return { fullAt: this.fullAt(clock), debt: this.debt(clock.steady()) };
  }

  /** How many draws it is in debt for: a batch starts as a whole if the bucket is open, and draws once per member. */
  debt(now: number): number {
    return Math.max(0, Math.ceil((this.full - now) / this.intervalMs) - this.rate.burst);
  }

  /** When the bucket will be full again, on the database's clock. */
  fullAt(clock: Pick<Clock, 'now' | 'steady'>): number {
    return Math.ceil(clock.now() + this.full - clock.steady());
  }

  /** When the next draw is allowed. */
  get opensAt(): number {
    return this.full - (this.rate.burst - 1) * this.intervalMs;
  }

  isOpen(now: number): boolean {
    return this.opensAt <= now;
  }

  draw(now: number): void {
    this.full = Math.max(now, this.full) + this.intervalMs;
  }

  /** Takes back a draw whose job did not start. */
  refund(): void {
    this.full -= this.intervalMs;
  }
}
