import type { Labels } from '../core/job.js';
import type { Queryable } from '../store/database.js';
import { type QueueRow, textLabels } from '../store/names.js';
import { readNeeds, readQueues } from '../store/queues.js';

/** What the small integers in the hot table stand for, as the leader knows it. */

export interface QueueInfo extends QueueRow {
  paused: boolean;
}

export interface NeedsInfo {
  readonly id: number;
  readonly tenant: string;
  readonly target: string;
  readonly handler: string;
  readonly labels: Labels;
}

export class Directory {
  private readonly queues = new Map<number, QueueInfo>();
  private readonly needs = new Map<number, NeedsInfo>();
  private newestQueue = 0;
  private newestNeeds = 0;

  constructor(private readonly db: Queryable) {}

  queue(id: number): QueueInfo | undefined {
    return this.queues.get(id);
  }

  needsOf(id: number): NeedsInfo | undefined {
    return this.needs.get(id);
  }

  findQueue(tenant: string, name: string): QueueInfo | undefined {
    for (const queue of this.queues.values())
      if (queue.tenant === tenant && queue.name === name) return queue;
    return undefined;
  }

  knows(waiting: { queue: number; needs: number }): boolean {
    return this.queues.has(waiting.queue) && this.needs.has(waiting.needs);
  }

  /** Reads what has been added since the last time. Ids can commit out of order, so it looks back a little. */
  async learn(): Promise<void> {
    const lookBack = 1_000;
    for (const row of await readQueues(this.db, this.newestQueue - lookBack)) {
      if (!this.queues.has(row.id)) this.queues.set(row.id, { ...row });
      this.newestQueue = Math.max(this.newestQueue, row.id);
    }
    for (const row of await readNeeds(this.db, this.newestNeeds - lookBack)) {
      if (!this.needs.has(row.id)) this.needs.set(row.id, { ...row, labels: textLabels(row.labels) });
      this.newestNeeds = Math.max(this.newestNeeds, row.id);
    }
  }
}
