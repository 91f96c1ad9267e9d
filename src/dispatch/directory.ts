import type { Labels } from '../core/job.js';
import { DEFAULT_TENANT_LIMITS, type QueueLimits, type TenantLimits } from '../core/limits.js';
import type { Queryable } from '../store/database.js';
import { type QueueRow, textLabels } from '../store/names.js';
import { rateOfRow, readNeeds, readQueues } from '../store/queues.js';
import { readTenants, type TenantRow } from '../store/tenants.js';

/** What the small integers in the hot table stand for, and what queues and tenants may use, as the leader knows it. */

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

const UNKNOWN_TENANT: TenantInfo = { ...DEFAULT_TENANT_LIMITS, fullAt: 0 };

/** Ids can commit out of order, so looking for new ones begins a little before the newest. */
const LOOK_BACK = 1_000;

export class Directory {
  private readonly queues = new Map<number, QueueInfo>();
  private readonly queueIds = new Map<string, number>();
  private readonly needs = new Map<number, NeedsInfo>();
  private readonly tenants = new Map<string, TenantInfo>();
  private newestQueue = 0;
  private newestNeeds = 0;

  constructor(private readonly db: Queryable) {}

  queue(id: number): QueueInfo | undefined {
    return this.queues.get(id);
  }

  needsOf(id: number): NeedsInfo | undefined {
    return this.needs.get(id);
  }

  tenant(id: string): TenantInfo {
    return this.tenants.get(id) ?? UNKNOWN_TENANT;
  }

  findQueue(tenant: string, name: string): QueueInfo | undefined {
    const id = this.queueIds.get(`${tenant}\n${name}`);
    return id === undefined ? undefined : this.queues.get(id);
  }

  knows(waiting: { queue: number; needs: number }): boolean {
    return this.queues.has(waiting.queue) && this.needs.has(waiting.needs);
  }

  /** What a leader just wrote about a queue. */
  setQueue(row: QueueRow): QueueInfo {
    const info = toQueueInfo(row);
    const known = this.queues.get(row.id);
    // Whoever holds the queue sees its limits change.
    if (known) return Object.assign(known, info);
    this.queues.set(row.id, info);
    this.queueIds.set(`${row.tenant}\n${row.name}`, row.id);
    return info;
  }

  setTenant(row: TenantRow): void {
    this.tenants.set(row.id, { weight: row.weight, rate: rateOfRow(row), fullAt: row.full_at });
  }

  /** At the beginning of a term: what only leaders write, and what there is of everything else. */
  async load(): Promise<void> {
    for (const row of await readTenants(this.db)) this.setTenant(row);
    await this.learn();
  }

  /** Reads what has been added since the last time. */
  async learn(): Promise<void> {
    for (const row of await readQueues(this.db, this.newestQueue - LOOK_BACK)) {
      if (!this.queues.has(row.id)) this.setQueue(row);
      this.newestQueue = Math.max(this.newestQueue, row.id);
    }
    for (const row of await readNeeds(this.db, this.newestNeeds - LOOK_BACK)) {
      if (!this.needs.has(row.id)) this.needs.set(row.id, { ...row, labels: textLabels(row.labels) });
      this.newestNeeds = Math.max(this.newestNeeds, row.id);
    }
  }
}

function toQueueInfo(row: QueueRow): QueueInfo {
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
