import type { QueueShare } from './queue-share.js';
import type { RoundRobinCursor } from './round-robin.js';
import type { WorkerGroup } from './shares.js';
import type { TenantShare } from './tenant-share.js';

/**
 * One pass of a worker over the tenants and queues in round-robin order. A queue without a job for the worker is
 * skipped once and not visited again, so a pass costs O(queues + jobs).
 */
export class Round {
  private readonly tenants: RoundRobinCursor<TenantShare> | null;
  private readonly queues = new Map<TenantShare, RoundRobinCursor<QueueShare>>();
  private done = false;

  constructor(
    private readonly workerGroup: WorkerGroup,
    /** The only tenant that is served; null serves all. */
    private readonly own: TenantShare | null,
  ) {
    this.tenants = own ? null : workerGroup.tenants.cursor();
  }

  get tenant(): TenantShare | undefined {
    if (this.tenants) return this.tenants.current;
    return this.done ? undefined : this.own!;
  }

  nextTenant(): TenantShare | undefined {
    if (this.tenants) return this.tenants.next();
    this.done = true;
    return undefined;
  }

  /** The current queue of the current tenant. */
  get queue(): QueueShare | undefined {
    return this.tenant && this.queuesOf(this.tenant).current;
  }

  nextQueue(): QueueShare | undefined {
    return this.tenant && this.queuesOf(this.tenant).next();
  }

  /** Counts a job that the current queue started against its quantum and its tenant's. */
  spend(share: QueueShare): void {
    this.queuesOf(share.tenant).spend(share.info.weight);
    this.tenants?.spend(share.tenant.weight);
  }

  private queuesOf(tenant: TenantShare): RoundRobinCursor<QueueShare> {
    let cursor = this.queues.get(tenant);
    if (!cursor) {
      cursor = tenant.roundRobin(this.workerGroup).cursor();
      this.queues.set(tenant, cursor);
    }
    return cursor;
  }
}
