import type { QueueLine } from './queue-line.js';
import type { Way } from './ring.js';
import type { Audience } from './shares.js';
import type { TenantLine } from './tenant-line.js';

/**
 * One way round the queues whose turn it is. What has nothing for the one who walks is passed by once and not
 * asked again on this walk, so a walk costs as much as there are queues and jobs, however they are mixed.
 */
export class Walk {
  private readonly tenants: Way<TenantLine> | null;
  private readonly queues = new Map<TenantLine, Way<QueueLine>>();
  private done = false;

  constructor(
    private readonly audience: Audience,
    /** The only tenant that is served; null serves all. */
    private readonly own: TenantLine | null,
  ) {
    this.tenants = own ? null : audience.tenants.way();
  }

  get tenant(): TenantLine | undefined {
    if (this.tenants) return this.tenants.current;
    return this.done ? undefined : this.own!;
  }

  nextTenant(): TenantLine | undefined {
    if (this.tenants) return this.tenants.next();
    this.done = true;
    return undefined;
  }

  /** The queue of the current tenant whose turn it is. */
  get queue(): QueueLine | undefined {
    return this.tenant && this.queuesOf(this.tenant).current;
  }

  nextQueue(): QueueLine | undefined {
    return this.tenant && this.queuesOf(this.tenant).next();
  }

  /** The current queue started a job: that counts for its turn, and for its tenant's. */
  spend(line: QueueLine): void {
    this.queuesOf(line.tenant).spend(line.info.weight);
    this.tenants?.spend(line.tenant.weight);
  }

  private queuesOf(tenant: TenantLine): Way<QueueLine> {
    let way = this.queues.get(tenant);
    if (!way) {
      way = tenant.ring(this.audience).way();
      this.queues.set(tenant, way);
    }
    return way;
  }
}
