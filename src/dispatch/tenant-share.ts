import type { Clock, Timer } from '../core/clock.js';
import { Bucket, isSameRate } from '../core/rate.js';
import type { TenantInfo } from './directory.js';
import type { QueueShare } from './queue-share.js';
import { RoundRobin } from './round-robin.js';
import type { WorkerGroup } from './shares.js';

/** One tenant as choosing sees it: which of its queues could start a job, and what its limits leave. */
export class TenantShare {
  /** The round robin of its queues for each group of workers. */
  readonly roundRobins = new Map<WorkerGroup, RoundRobin<QueueShare>>();
  readonly queues = new Set<QueueShare>();
  bucket: Bucket | null = null;
  timer: Timer | undefined;
  weight = 1;
  /** Whether the next tokens of its bucket are for a gang. */
  isReserved = false;

  constructor(readonly id: string) {}

  /** Continues with the limits as an earlier leader stored them. */
  resume({ weight, rate, fullAt, debt }: TenantInfo, clock: Clock): void {
    this.weight = weight;
    this.bucket = rate && Bucket.resumed(rate, fullAt, clock, debt);
  }

  /** Applies new limits. A new rate begins with one token. */
  limitsChanged({ weight, rate }: TenantInfo, clock: Clock): void {
    this.timer?.cancel();
    this.timer = undefined;
    this.weight = weight;
    if (!rate) this.bucket = null;
    else if (!this.bucket || !isSameRate(this.bucket.rate, rate))
      this.bucket = Bucket.drained(rate, clock.steady());
  }

  roundRobin(workerGroup: WorkerGroup): RoundRobin<QueueShare> {
    let roundRobin = this.roundRobins.get(workerGroup);
    if (!roundRobin) {
      roundRobin = new RoundRobin();
      this.roundRobins.set(workerGroup, roundRobin);
    }
    return roundRobin;
  }
}
