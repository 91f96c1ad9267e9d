import type { Clock, Timer } from '../core/clock.js';
import { Bucket, isSameRate } from '../core/rate.js';
import type { TenantInfo } from './directory.js';
import type { QueueLine } from './queue-line.js';
import { Ring } from './ring.js';
import type { Audience } from './shares.js';

/** One tenant as choosing sees it: its queues that could start a job, and what its limits leave. */
export class TenantLine {
  /** Queues in the order of their turns, for each audience of its own. */
  readonly rings = new Map<Audience, Ring<QueueLine>>();
  readonly queues = new Set<QueueLine>();
  bucket: Bucket | null = null;
  timer: Timer | undefined;
  weight = 1;

  constructor(readonly id: string) {}

  /** What the tenant may use, as an earlier leader left it. */
  resume({ weight, rate, fullAt }: TenantInfo, clock: Clock): void {
    this.weight = weight;
    this.bucket = rate && Bucket.resumed(rate, fullAt, clock);
  }

  /** New limits apply from now on. A changed rate begins with what is known to be free. */
  limitsChanged({ weight, rate }: TenantInfo, clock: Clock): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.weight = weight;
    if (!rate) this.bucket = null;
    else if (!this.bucket || !isSameRate(this.bucket.rate, rate))
      this.bucket = Bucket.drained(rate, clock.steady());
  }

  ring(audience: Audience): Ring<QueueLine> {
    let ring = this.rings.get(audience);
    if (!ring) {
      ring = new Ring();
      this.rings.set(audience, ring);
    }
    return ring;
  }
}
