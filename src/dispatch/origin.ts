import { Circuit, type CircuitRules } from '../core/circuit.js';
import type { OriginLimits } from '../core/limits.js';
import { Bucket, isSameRate } from '../core/rate.js';

/** Why no call to an origin may start now; moments are on the steady clock. */
export type Hold =
  /** The origin asked for a pause. */
  | { readonly kind: 'pause'; readonly until: number }
  | { readonly kind: 'circuit'; readonly until: number }
  /** One call is out to see whether the origin is up again. */
  | { readonly kind: 'probe' }
  | { readonly kind: 'limit' }
  /** It has its part of the workers' slots. */
  | { readonly kind: 'slots' }
  | { readonly kind: 'rate'; readonly until: number };

/** One origin that a tenant calls, or a bucket that many of them share: what holds its calls up. */
export class Origin {
  readonly circuit: Circuit;
  /** The needs with which jobs call it: one for each set of labels. */
  readonly needs = new Set<number>();
  /** How many of them have waiting jobs in memory. */
  listed = 0;
  /** Calls that are out; those that were handed on are over. */
  running = 0;
  pausedUntil = Number.NEGATIVE_INFINITY;
  bucket: Bucket | null = null;
  concurrency: number | null;
  /** Whether nobody has said how many of its calls may run at the same time. */
  private isUsual = true;
  /** Whether choosing passes it over. */
  isShut = false;
  /** The earliest moment for which a timer is set. */
  wakeAt = Number.POSITIVE_INFINITY;

  constructor(
    readonly tenant: string,
    readonly name: string,
    rules: CircuitRules,
    private readonly usualConcurrency: number | null,
    /** The slots that workers have for calls of its tenant. */
    private readonly slots: () => number = () => Number.POSITIVE_INFINITY,
  ) {
    this.circuit = new Circuit(rules);
    this.concurrency = usualConcurrency;
  }

  /** Applies limits; null takes them away. A new rate begins with one token. */
  limit(limits: OriginLimits | null, now: number): void {
    const { concurrency, rate = null } = limits ?? {};
    this.isUsual = concurrency === undefined;
    this.concurrency = concurrency === undefined ? this.usualConcurrency : concurrency;
    if (rate === null) this.bucket = null;
    else if (!this.bucket || !isSameRate(this.bucket.rate, rate)) this.bucket = Bucket.drained(rate, now);
  }

  /** What keeps the next call from starting; null if nothing does. */
  holdAt(now: number): Hold | null {
    const { circuit, bucket } = this;
    if (this.pausedUntil > now) return { kind: 'pause', until: this.pausedUntil };
    const state = circuit.stateAt(now);
    if (state === 'open') return { kind: 'circuit', until: circuit.openUntil! };
    if (state === 'probing') return { kind: 'probe' };
    if (this.concurrency !== null && this.running >= this.concurrency) return { kind: 'limit' };
    if (this.running >= this.mostOfSlots) return { kind: 'slots' };
    return bucket && !bucket.isOpen(now) ? { kind: 'rate', until: bucket.opensAt } : null;
  }

  /**
   * How many slots its calls may take up: half of them, because a host that is slow must leave some to others. Whoever sets a
   * limit, or has the usual one taken away, decides otherwise.
   */
  get mostOfSlots(): number {
    if (!this.isUsual || this.usualConcurrency === null) return Number.POSITIVE_INFINITY;
    return Math.max(1, Math.floor(this.slots() / 2));
  }

  /** When its calls may start, as far as pauses and rates go; never, as far as is known, while a probe is out. */
  opensAt(now: number): number {
    const { circuit, bucket } = this;
    if (circuit.stateAt(now) === 'probing') return Number.POSITIVE_INFINITY;
    return Math.max(
      this.pausedUntil,
      circuit.openUntil ?? Number.NEGATIVE_INFINITY,
      bucket?.opensAt ?? Number.NEGATIVE_INFINITY,
    );
  }

  /** Whether jobs call it or wait for it. */
  get isInUse(): boolean {
    return this.running + this.listed > 0;
  }

  /** Whether a new one would be just the same. */
  isPlainAt(now: number): boolean {
    return this.circuit.failures === 0 && this.pausedUntil <= now && this.bucket === null;
  }
}
