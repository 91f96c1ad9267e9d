import type { QueueLine } from './queue-line.js';
import type { Audience } from './shares.js';
import type { TenantLine } from './tenant-line.js';

/**
 * One way round the queues whose turn it is. What has nothing for the one who walks is passed by once and not
 * asked again on this walk, so a walk costs as much as there are queues and jobs, however they are mixed.
 */
export class Walk {
  private readonly tenants: Ring<TenantLine> | null;
  private readonly queues = new Map<TenantLine, Ring<QueueLine>>();

  constructor(
    private readonly audience: Audience,
    /** The only tenant that is served; null serves all. */
    private readonly own: TenantLine | null,
  ) {
    this.tenants = own ? null : new Ring(audience.tenants);
  }

  private done = false;

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
    return this.tenant && this.ring(this.tenant).current;
  }

  nextQueue(): QueueLine | undefined {
    return this.tenant && this.ring(this.tenant).next();
  }

  /** The current queue got what it may have in one turn, or its tenant did: others come next. */
  pass(queue: boolean, tenant: boolean): void {
    if (queue && this.tenant) this.ring(this.tenant).rotate();
    if (tenant) this.tenants?.rotate();
  }

  private ring(tenant: TenantLine): Ring<QueueLine> {
    let ring = this.queues.get(tenant);
    if (!ring) {
      ring = new Ring(tenant.ring(this.audience));
      this.queues.set(tenant, ring);
    }
    return ring;
  }
}

/** A way through a set that others add to and take from meanwhile; what goes to its end is met again. */
class Ring<T> {
  private readonly iterator: IterableIterator<T>;
  private at: T | undefined;

  constructor(private readonly members: Set<T>) {
    this.iterator = members.values();
    this.next();
  }

  get current(): T | undefined {
    // What has left the set since must not be chosen.
    return this.at === undefined || this.members.has(this.at) ? this.at : this.next();
  }

  next(): T | undefined {
    const { done, value } = this.iterator.next();
    this.at = done ? undefined : value;
    return this.at;
  }

  /** Sends the current one to the end. */
  rotate(): void {
    const { at } = this;
    if (at === undefined) return;
    if (this.members.delete(at)) this.members.add(at);
    this.next();
  }
}
