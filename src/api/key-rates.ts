import { PunctualError } from '../core/errors.js';
import { Bucket, type Rate } from '../core/rate.js';

/** Keys, or whoever else has a rate, that a node remembers; one that is forgotten begins with a full bucket. */
const MAX_KNOWN = 10_000;

/**
 * How many requests each key makes at this node. What workers say is not counted: a key that asks too much must not make its
 * workers look dead.
 */
export class KeyRates {
  /** By the id of the key; the least recently used first. */
  private readonly buckets = new Map<string, Bucket>();
  private readonly rate: Rate | null;

  /** Without a limit if it is zero; a second's worth of requests may come at once. */
  constructor(
    perSecond: number,
    private readonly who = 'A key',
  ) {
    this.rate = perSecond === 0 ? null : { limit: perSecond, perMs: 1_000, burst: perSecond };
  }

  /** Takes note of a request; throws RATE_LIMITED if the key makes too many. */
  count(keyId: string, now = performance.now()): void {
    const { rate } = this;
    if (!rate) return;
    const bucket = this.buckets.get(keyId) ?? new Bucket(rate, now);
    this.buckets.delete(keyId);
    this.buckets.set(keyId, bucket);
    for (const oldest of this.buckets.keys()) {
      if (this.buckets.size <= MAX_KNOWN) break;
      this.buckets.delete(oldest);
    }
    if (!bucket.isOpen(now)) {
      throw new PunctualError(
        'RATE_LIMITED',
        `${this.who} may make ${rate.limit} requests in a second at a node.`,
        {
          retryAfter: (bucket.opensAt - now) / 1_000,
        },
      );
    }
    bucket.draw(now);
  }
}
