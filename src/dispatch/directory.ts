import type { Labels } from '../core/job.js';
import { DEFAULT_TENANT_LIMITS, type QueueLimits, type TenantLimits } from '../core/limits.js';
import type { Queryable } from '../store/database.js';
import { type QueueRow, textLabels } from '../store/names.js';
import { rateOfRow, readNeeds, readQueues } from '../store/queues.js';
import { readTenantsOf, type TenantRow } from '../store/tenants.js';

/**
 * What the small integers in the hot table stand for, and what queues and tenants may use, as the leader knows it. They
 * are read by their ids when a job that uses them is met: how many there are in the tables makes no difference. Those
 * that nothing in memory uses are forgotten when they become many.
 */

export interface QueueInfo extends QueueLimits {
  readonly id: number;
  readonly tenant: string;
  readonly name: string;
  readonly paused: boolean;
  /** When the bucket was to be full again, as the last leader left it. */
  readonly fullAt: number;
}

export interface TenantInfo extends TenantLimits {
  readonly fullAt: number;
}

export interface NeedsInfo {
  readonly id: number;
  readonly tenant: string;
  readonly target: string;
  readonly handler: string;
  readonly labels: Labels;
}

/** The integers that stand for the names of a job. */
export interface NameIds {
  readonly queue: number;
  readonly needs: number;
}

export interface DirectoryUse {
  isQueueInUse(queue: number): boolean;
  isNeedsInUse(needs: number): boolean;
  onNeedsForgotten(needs: number): void;
}

const UNKNOWN_TENANT: TenantInfo = { ...DEFAULT_TENANT_LIMITS, fullAt: 0 };

/** Names of each kind from which on those that nothing uses are forgotten. */
const CROWDED_AT = 20_000;
/** Names read by one statement. */
const MAX_READ = 2_000;

export class Directory {
  private readonly queues = new Map<number, QueueInfo>();
  private readonly needs = new Map<number, NeedsInfo>();
  private readonly tenants = new Map<string, TenantInfo>();
  private forgetting = false;
  /** How many wait for names at the moment. */
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

  /** What a leader just wrote about a queue, or has read of it. */
  setQueue(row: QueueRow): void {
    const info = toQueueInfo(row);
    const known = this.queues.get(row.id);
    // Whoever holds the queue sees its limits change.
    if (known) Object.assign(known, info);
    else this.queues.set(row.id, info);
  }

  setTenant(row: TenantRow): void {
    this.tenants.set(row.id, { weight: row.weight, rate: rateOfRow(row), fullAt: row.full_at });
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
   * Reads the names that are not known. Afterwards all are, but for those that the tables do not have; whoever relies on
   * that uses them in the same turn of the event loop.
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

  /** What was written while it was read is newer, so nothing that is known is replaced. */
  private async learnQueues(ids: readonly number[]): Promise<void> {
    const [queues, tenants] = await Promise.all([readQueues(this.db, ids), readTenantsOf(this.db, ids)]);
    for (const row of tenants) if (!this.tenants.has(row.id)) this.setTenant(row);
    for (const row of queues) if (!this.queues.has(row.id)) this.setQueue(row);
  }

  private async learnNeeds(ids: readonly number[]): Promise<void> {
    for (const row of await readNeeds(this.db, ids)) {
      if (!this.needs.has(row.id)) this.needs.set(row.id, { ...row, labels: textLabels(row.labels) });
    }
  }

  /**
   * In a later turn of the event loop, and never while somebody learns: nobody may lose what he has just waited for, or
   * knew when he began to.
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
    // What is in use stays, so looking again makes sense only when there are many more.
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
  };
}
