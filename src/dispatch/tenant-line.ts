import type { Timer } from '../core/clock.js';
import type { TenantLimits } from '../core/limits.js';
import type { Bucket } from '../core/rate.js';
import type { QueueLine } from './queue-line.js';
import type { Audience } from './shares.js';

/** One tenant as choosing sees it: its queues that could start a job, and what its limits leave. */
export class TenantLine {
  /** Queues in the order of their turns, for each audience of its own. */
  readonly rings = new Map<Audience, Set<QueueLine>>();
  readonly queues = new Set<QueueLine>();
  /** Jobs it may still start before the next tenant has its turn. */
  credit = 0;
  bucket: Bucket | null = null;
  timer: Timer | undefined;
  weight = 1;

  constructor(readonly id: string) {}

  /** New limits apply from now on. */
  setLimits(limits: TenantLimits, bucket: Bucket | null): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.weight = limits.weight;
    this.bucket = bucket;
  }

  ring(audience: Audience): Set<QueueLine> {
    let ring = this.rings.get(audience);
    if (!ring) {
      ring = new Set();
      this.rings.set(audience, ring);
    }
    return ring;
  }
}
