import type { Labels } from '../core/job.js';
import {
  DEFAULT_TENANT_LIMITS,
  type OriginLimits,
  type QueueLimits,
  type TenantLimits,
} from '../core/limits.js';
import type { Queryable } from '../store/database.js';
import type { QueueRow } from '../store/names.js';
import { textLabels } from '../store/needs-digest.js';
import { limitsOfRow } from '../store/origin-limits.js';
import { rateOfRow, readNeeds, readQueues } from '../store/queues.js';
import { readTenantsOf, type TenantRow } from '../store/tenants.js';

/** A queue as the leader knows it. */
export interface QueueInfo extends QueueLimits {
  readonly id: number;
  readonly tenant: string;
  readonly name: string;
  readonly paused: boolean;
  /** When the token bucket will be full again, as the last leader stored it. */
  readonly fullAt: number;
  /** How many starts the bucket was in debt for then. */
  readonly debt: number;
}

/** A tenant as the leader knows it. */
export interface TenantInfo extends TenantLimits {
  readonly fullAt: number;
  readonly debt: number;
}

/** What a kind of jobs needs of a worker. */
export interface NeedsInfo {
  readonly id: number;
  readonly tenant: string;
  readonly target: string;
  readonly handler: string;
  readonly labels: Labels;
  /** For an origin in place of the handler: the limits that were set for it when it was read. */
  readonly limits?: OriginLimits | null;
}

/** The ids of a job's queue and needs. */
export interface NameIds {
  readonly queue: number;
  readonly needs: number;
}

/** How the directory learns what is in use, and tells what it forgot. */
interface DirectoryUse {
  isQueueInUse(queue: number): boolean;
  isNeedsInUse(needs: number): boolean;
  onNeedsForgotten(needs: number): void;
}

const UNKNOWN_TENANT: TenantInfo = { ...DEFAULT_TENANT_LIMITS, fullAt: 0, debt: 0 };

/** The number of names of a kind above which unused ones are forgotten. */
const CROWDED_AT = 20_000;
/** Names read by one statement. */
const MAX_READ = 2_000;

/**
 * A cache of the queues, needs and tenants behind the small integers in the hot table. They are read by id when a job
 * that uses them is met, so it makes no difference how many the tables hold. Those that nothing in memory uses are
 * forgotten when there are many.
 */
export class Directory {
  private readonly queues = new Map<number, QueueInfo>();
  private readonly needs = new Map<number, NeedsInfo>();
  private readonly tenants = new Map<string, TenantInfo>();
  private forgetting = false;
  /** How many calls of `learn` are in progress. */
  private learning = 0;
  private readonly crowdedAt = { queues: CROWDED_AT, needs: CROWDED_AT };

  constructor(
    private readonly db: Queryable,
    private readonly use: DirectoryUse,
  ) {}

  queue(id: number): QueueInfo | undefined {
    return this.queues.get(id);
  }

  needsOf(id: number): NeedsInfo | undefined {
    return this.needs.get(id);
  }

  tenant(id: string): TenantInfo {
    return this.tenants.get(id) ?? UNKNOWN_TENANT;
  }

  knows({ queue, needs }: NameIds): boolean {
    return this.queues.has(queue) && this.needs.has(needs);
  }

  /** Notes what the leader has just written to a queue, or read of it. */
  setQueue(row: QueueRow): void {
    const info = toQueueInfo(row);
    const known = this.queues.get(row.id);
    // In the same object, so that whoever holds it sees the change.
    if (known) Object.assign(known, info);
    else this.queues.set(row.id, info);
  }

  /** Notes the limits of an origin that the leader has just written. */
  setOriginLimits(tenant: string, origin: string, limits: OriginLimits | null): void {
    for (const info of this.needs.values()) {
      if (info.target === 'http' && info.handler === origin && info.tenant === tenant)
        this.needs.set(info.id, { ...info, limits });
    }
  }

  setTenant(row: TenantRow): void {
    const { weight, full_at: fullAt, debt } = row;
    this.tenants.set(row.id, { weight, rate: rateOfRow(row), fullAt, debt });
  }

  /** Whether the tables still have these names as memory does. */
  async isAsStored({ queue, needs }: NameIds): Promise<boolean> {
    const [[queueRow], [needsRow]] = await Promise.all([
      readQueues(this.db, [queue]),
      readNeeds(this.db, [needs]),
    ]);
    const [known, knownNeeds] = [this.queues.get(queue), this.needs.get(needs)];
    return (
      queueRow?.tenant === known?.tenant &&
      queueRow?.name === known?.name &&
      needsRow?.tenant === knownNeeds?.tenant &&
      needsRow?.handler === knownNeeds?.handler
    );
  }

  /**
   * Reads the names that are not known. Afterwards all are known that the tables have, until the current iteration of
   * the event loop ends.
   */
  async learn(jobs: readonly NameIds[]): Promise<void> {
    this.learning += 1;
    try {
      await this.learnUnknown(jobs);
    } finally {
      this.learning -= 1;
      this.forgetSoon();
    }
  }

  private async learnUnknown(jobs: readonly NameIds[]): Promise<void> {
    const queues = new Set<number>();
    const needs = new Set<number>();
    for (const job of jobs) {
      if (!this.queues.has(job.queue)) queues.add(job.queue);
      if (!this.needs.has(job.needs)) needs.add(job.needs);
    }
    await Promise.all([
      ...portions(queues).map((ids) => this.learnQueues(ids)),
      ...portions(needs).map((ids) => this.learnNeeds(ids)),
    ]);
  }

  /** Never replaces what is known: it may have been written after this read began. */
  private async learnQueues(ids: readonly number[]): Promise<void> {
    const [queues, tenants] = await Promise.all([readQueues(this.db, ids), readTenantsOf(this.db, ids)]);
    for (const row of tenants) if (!this.tenants.has(row.id)) this.setTenant(row);
    for (const row of queues) if (!this.queues.has(row.id)) this.setQueue(row);
  }

  private async learnNeeds(ids: readonly number[]): Promise<void> {
    for (const row of await readNeeds(this.db, ids)) {
      if (this.needs.has(row.id)) continue;
      const { id, tenant, target, handler } = row;
      const limits = target === 'http' ? limitsOfRow(row) : null;
      this.needs.set(id, { id, tenant, target, handler, labels: textLabels(row.labels), limits });
    }
  }

  /**
   * Forgets in a later iteration of the event loop, and never while a `learn` is in progress: a caller must not lose
   * names that it has just learned, or that were known when its `learn` began.
   */
  private forgetSoon(): void {
    const isCrowded = this.queues.size > this.crowdedAt.queues || this.needs.size > this.crowdedAt.needs;
    if (!isCrowded || this.forgetting) return;
    this.forgetting = true;
    setImmediate(() => {
      this.forgetting = false;
      if (this.learning === 0) this.forgetUnused();
    });
  }

  private forgetUnused(): void {
    const { queues, needs, use, crowdedAt } = this;
    for (const id of queues.keys()) if (!use.isQueueInUse(id)) queues.delete(id);
    for (const id of needs.keys()) {
      if (use.isNeedsInUse(id)) continue;
      needs.delete(id);
      use.onNeedsForgotten(id);
    }
    // Names in use stay, so the next clean-up is worth it only when there are many more.
    crowdedAt.queues = Math.max(CROWDED_AT, 2 * queues.size);
    crowdedAt.needs = Math.max(CROWDED_AT, 2 * needs.size);
  }
}

function portions(ids: ReadonlySet<number>): number[][] {
  const all = [...ids];
  const parts: number[][] = [];
  for (let from = 0; from < all.length; from += MAX_READ) parts.push(all.slice(from, from + MAX_READ));
  return parts;
}

/** What the leader keeps of a row of a queue. */
export function toQueueInfo(row: QueueRow): QueueInfo {
  return {
    id: row.id,
    tenant: row.tenant,
    name: row.name,
    paused: row.paused,
    weight: row.weight,
    concurrency: row.concurrency,
    keyConcurrency: row.key_concurrency,
    rate: rateOfRow(row),
    fullAt: row.full_at,
    debt: row.debt,
  };
}
