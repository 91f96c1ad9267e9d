import type { Clock } from '../core/clock.js';
import type { Bucket } from '../core/rate.js';
import type { QueueInfo, TenantInfo } from './directory.js';
import { QueueLine, type Use } from './queue-line.js';
import { Ring } from './ring.js';
import type { Shelf } from './shelf.js';
import { TenantLine } from './tenant-line.js';
import { Walk } from './walk.js';

/** Workers that serve queues of the same names; null is every queue. Each audience has turns of its own. */
export class Audience {
  /** Tenants in the order of their turns, for workers that serve all tenants. */
  readonly tenants = new Ring<TenantLine>();
  workers = 0;

  constructor(readonly names: ReadonlySet<string> | null) {}
}

/** Somebody who asks for jobs. */
export interface Taker {
  /** Null serves all tenants. */
  readonly tenant: string | null;
  /** Null serves all queues. */
  readonly queues: ReadonlySet<string> | null;
}

export interface SharesOptions {
  readonly clock: Clock;
  readonly queueInfo: (queue: number) => QueueInfo;
  readonly tenantInfo: (tenant: string) => TenantInfo;
  /** Whether any worker can run jobs with such needs. */
  readonly isServed: (needs: number) => boolean;
  /** Called when a job may start that could not before. */
  readonly onReady: () => void;
}

/**
 * Whose turn it is: deficit round robin over tenants by weight, and over the queues inside a tenant. A queue
 * takes turns only while it has a job that may start and its limits leave room; so what is paused, saturated or
 * over its rate costs those who choose nothing, and holds up nobody.
 */
export class Shares {
  private readonly lines = new Map<number, QueueLine>();
  /** The queues that have jobs with such needs in memory. */
  private readonly linesByNeeds = new Map<number, Set<QueueLine>>();
  private readonly tenants = new Map<string, TenantLine>();
  private readonly audiences = new Map<string, Audience>();
  private readonly audiencesByName = new Map<string, Set<Audience>>();
  private readonly generalists = new Set<Audience>();
  /** Names are put in order once for each worker, not whenever it asks. */
  private readonly audienceKeys = new WeakMap<ReadonlySet<string>, string>();
  private stopped = false;

  constructor(private readonly options: SharesOptions) {}

  /** The queue, if anything of it is in memory. */
  find(queue: number): QueueLine | undefined {
    return this.lines.get(queue);
  }

  /** How many tenants besides one have a queue that takes turns now. */
  tenantsInTurn(besides: TenantLine): number {
    const others = [...this.tenants.values()].filter((tenant) => tenant !== besides);
    return others.filter((tenant) => [...tenant.queues].some((line) => line.listed)).length;
  }

  line(queue: number): QueueLine {
    let line = this.lines.get(queue);
    if (!line) {
      const { clock, queueInfo, isServed } = this.options;
      const info = queueInfo(queue);
      line = new QueueLine(info, this.tenant(info.tenant), {
        isServed,
        onGroup: (line, needs, isThere) => this.noteGroup(line, needs, isThere),
        clock,
      });
      line.tenant.queues.add(line);
      this.lines.set(queue, line);
    }
    return line;
  }

  /** A worker came or left: its audience has turns as long as it has workers. */
  join(taker: Taker): void {
    this.audience(taker.queues).workers += 1;
  }

  leave(taker: Taker): void {
    const audience = this.audience(taker.queues);
    audience.workers -= 1;
    if (audience.workers > 0) return;
    this.audiences.delete(this.keyOf(taker.queues));
    this.generalists.delete(audience);
    for (const name of audience.names ?? []) {
      const audiences = this.audiencesByName.get(name);
      audiences?.delete(audience);
      if (audiences?.size === 0) this.audiencesByName.delete(name);
    }
    for (const tenant of this.tenants.values()) tenant.rings.delete(audience);
  }

  /** Goes through the queues whose turn it is, for one who takes jobs; each at most once without getting one. */
  walk(taker: Taker): Walk {
    const audience = this.audience(taker.queues);
    const own =
      taker.tenant === null ? null : (this.tenants.get(taker.tenant) ?? new TenantLine(taker.tenant));
    return new Walk(audience, own);
  }

  /** Whether no queue that this taker serves could start a job, whether or not the taker could run it. */
  isQuietFor(taker: Taker): boolean {
    const audience = this.audience(taker.queues);
    if (taker.tenant === null) return audience.tenants.size === 0;
    return (this.tenants.get(taker.tenant)?.rings.get(audience)?.size ?? 0) === 0;
  }

  /** The shelf whose first job is next for the one who walks; `now` is on the steady clock. */
  choose(walk: Walk, canRun: (needs: number) => boolean, now: number): Shelf | undefined {
    for (let tenant = walk.tenant; tenant; tenant = walk.nextTenant()) {
      if (tenant.bucket && !tenant.bucket.isOpen(now)) continue;
      for (let line = walk.queue; line; line = walk.nextQueue()) {
        const shelf = line.best(canRun);
        if (shelf) return shelf;
      }
    }
    return undefined;
  }

  /** The job at the head of the shelf was taken by the one who walks: it counts against all limits and turns. */
  spend(walk: Walk, line: QueueLine, use: Use, now: number): void {
    const { tenant } = line;
    line.reserve(use);
    line.bucket?.draw(now);
    tenant.bucket?.draw(now);
    walk.spend(line);
    if (tenant.bucket && !tenant.bucket.isOpen(now)) this.updateTenant(tenant);
  }

  /** Counts a job against its limits that an earlier leader started. */
  reserve(use: Use): void {
    this.line(use.queue).reserve(use);
  }

  /** A job ended, or does not start after all; then its draw comes back too. */
  release(use: Use, refund = false): void {
    const line = this.lines.get(use.queue);
    if (!line) return;
    line.release(use);
    if (refund) line.bucket?.refund();
    this.update(line);
    if (!refund || !line.tenant.bucket) return;
    line.tenant.bucket.refund();
    this.updateTenant(line.tenant);
  }

  /** Lets a queue take turns, or takes it out of them; to be called after every change of what it could start. */
  update(line: QueueLine, gained = true): void {
    const isEligible = this.isEligible(line);
    if (isEligible !== line.listed) {
      line.listed = isEligible;
      for (const audience of this.audiencesOf(line)) this.enlist(line, audience);
    }
    if (isEligible && gained) this.options.onReady();
    if (line.isEmpty) this.forget(line);
  }

  /** The limits or the pause of a queue changed. */
  queueChanged(queue: number): void {
    const line = this.lines.get(queue);
    if (!line) return;
    line.limitsChanged(this.options.clock);
    this.update(line);
  }

  tenantChanged(id: string): void {
    const tenant = this.tenants.get(id);
    if (!tenant) return;
    const { clock, tenantInfo } = this.options;
    tenant.limitsChanged(tenantInfo(id), clock);
    this.updateTenant(tenant);
  }

  /** Whether any job in memory has such needs. */
  hasNeeds(needs: number): boolean {
    return this.linesByNeeds.has(needs);
  }

  /** Workers came or left: some needs may be served that were not, or the other way round. */
  servingChanged(needs: ReadonlySet<number>): void {
    for (const each of needs) {
      for (const line of [...(this.linesByNeeds.get(each) ?? [])]) {
        line.list(line.group(each));
        this.update(line);
      }
    }
  }

  stop(): void {
    this.stopped = true;
    for (const line of this.lines.values()) line.timer?.cancel();
    for (const tenant of this.tenants.values()) tenant.timer?.cancel();
  }

  private noteGroup(line: QueueLine, needs: number, isThere: boolean): void {
    const lines = this.linesByNeeds.get(needs);
    if (isThere) {
      if (lines) lines.add(line);
      else this.linesByNeeds.set(needs, new Set([line]));
      return;
    }
    lines?.delete(line);
    if (lines?.size === 0) this.linesByNeeds.delete(needs);
  }

  private isEligible(line: QueueLine): boolean {
    if (line.ready.size === 0 || line.info.paused || line.isSaturated) return false;
    if (!line.bucket || line.bucket.isOpen(this.options.clock.steady())) return true;
    line.timer ??= this.later(line.bucket, () => {
      line.timer = undefined;
      this.update(line);
    });
    return false;
  }

  private later(bucket: Bucket, then: () => void) {
    const { clock } = this.options;
    return clock.after(Math.ceil(bucket.opensAt - clock.steady()), () => {
      if (!this.stopped) then();
    });
  }

  private enlist(line: QueueLine, audience: Audience): void {
    const { tenant } = line;
    const ring = tenant.ring(audience);
    if (line.listed) ring.add(line);
    else ring.delete(line);
    this.enlistTenant(tenant, audience);
  }

  private enlistTenant(tenant: TenantLine, audience: Audience): void {
    if (this.isOpen(tenant) && tenant.ring(audience).size > 0) audience.tenants.add(tenant);
    else audience.tenants.delete(tenant);
  }

  private updateTenant(tenant: TenantLine): void {
    for (const audience of tenant.rings.keys()) this.enlistTenant(tenant, audience);
    if (this.isOpen(tenant)) this.options.onReady();
  }

  private isOpen(tenant: TenantLine): boolean {
    if (!tenant.bucket || tenant.bucket.isOpen(this.options.clock.steady())) return true;
    tenant.timer ??= this.later(tenant.bucket, () => {
      tenant.timer = undefined;
      this.updateTenant(tenant);
    });
    return false;
  }

  private tenant(id: string): TenantLine {
    let tenant = this.tenants.get(id);
    if (!tenant) {
      tenant = new TenantLine(id);
      tenant.resume(this.options.tenantInfo(id), this.options.clock);
      this.tenants.set(id, tenant);
    }
    return tenant;
  }

  private audiencesOf(line: QueueLine): Audience[] {
    return [...this.generalists, ...(this.audiencesByName.get(line.info.name) ?? [])];
  }

  private audience(names: ReadonlySet<string> | null): Audience {
    const key = this.keyOf(names);
    const known = this.audiences.get(key);
    if (known) return known;
    const audience = new Audience(names);
    this.audiences.set(key, audience);
    if (names === null) this.generalists.add(audience);
    for (const name of names ?? []) {
      const audiences = this.audiencesByName.get(name) ?? new Set();
      this.audiencesByName.set(name, audiences.add(audience));
    }
    for (const line of this.lines.values()) {
      if (line.listed && (names === null || names.has(line.info.name))) this.enlist(line, audience);
    }
    return audience;
  }

  private keyOf(names: ReadonlySet<string> | null): string {
    if (names === null) return '*';
    const known = this.audienceKeys.get(names);
    if (known !== undefined) return known;
    const key = [...names].sort().join(',');
    this.audienceKeys.set(names, key);
    return key;
  }

  /** Nothing of the queue is in memory any more. */
  private forget(line: QueueLine): void {
    line.timer?.cancel();
    this.lines.delete(line.info.id);
    const { tenant } = line;
    tenant.queues.delete(line);
    // A tenant's bucket must be remembered; without one there is nothing that a new line would not know.
    if (tenant.queues.size === 0 && !tenant.bucket) this.tenants.delete(tenant.id);
  }
}
