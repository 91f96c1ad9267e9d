import { setTimeout as pause } from 'node:timers/promises';
import { messageOf } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Pool } from '../store/database.js';
import {
  type AddedCounts,
  addUsage,
  addUsageOfOne,
  countedTenants,
  forgetUsage,
  forgetUsageOfOne,
} from '../store/tenant-usage.js';

/** How long a failed write waits for the next try. */
const PAUSE_MS = 1_000;

/**
 * Counts the jobs that the leader adds by itself, for tenants with a quota of jobs: those of schedules and of callers'
 * transactions, those that are admitted, and those that people send round again. They are never refused. Only these tenants
 * cost a statement, and what comes while one is under way is counted by the next.
 */
export class AddedJobs {
  /** Null until they were read: then everything is noted, and sorted out later. */
  private tenants: Set<string> | null = null;
  private added = new Map<string, { live: number; later: number }>();
  /** What was changed about tenants before they were read. */
  private readonly changed = new Map<string, boolean>();
  private isWriting = false;
  private isOver = false;

  constructor(
    private readonly pool: Pool,
    private readonly log: Log,
  ) {}

  /**
   * Begins a term: what the last leader had not counted yet is lost, so all is counted anew when it matters. In the
   * background, because a submission that hangs may hold a row for a while, and must not hold up a takeover.
   */
  start(): void {
    void this.load();
  }

  private async load(): Promise<void> {
    let left: string[] | null = null;
    while (!this.isOver && (left === null || left.length > 0)) {
      try {
        if (left === null) {
          const tenants = await countedTenants(this.pool);
          this.begin(new Set(tenants));
          left = tenants;
          left = await forgetUsage(this.pool, tenants);
        }
        for (; left.length > 0; left = left.slice(1)) await forgetUsageOfOne(this.pool, left[0]!);
      } catch (error) {
        this.log.warn({ error: messageOf(error) }, 'jobs could not be counted anew for quotas');
        await pause(PAUSE_MS, undefined, { ref: false });
      }
    }
  }

  private begin(tenants: Set<string>): void {
    for (const [tenant, isCounted] of this.changed) {
      if (isCounted) tenants.add(tenant);
      else tenants.delete(tenant);
    }
    this.tenants = tenants;
    for (const tenant of this.added.keys()) if (!tenants.has(tenant)) this.added.delete(tenant);
    if (this.added.size > 0 && !this.isWriting) void this.write();
  }

  /** Whether the jobs of a tenant are counted from now on. */
  setTenant(tenant: string, isCounted: boolean): void {
    if (this.tenants === null) this.changed.set(tenant, isCounted);
    else if (isCounted) this.tenants.add(tenant);
    else this.tenants.delete(tenant);
  }

  /** Whether the jobs of a tenant may be counted. */
  mayCount(tenant: string): boolean {
    return this.tenants === null || this.tenants.has(tenant);
  }

  /** Notes jobs that were stored. */
  note(tenant: string, live: number, later: number): void {
    if (this.tenants && !this.tenants.has(tenant)) return;
    const sum = this.added.get(tenant) ?? { live: 0, later: 0 };
    sum.live += live;
    sum.later += later;
    this.added.set(tenant, sum);
    if (this.tenants && !this.isWriting) void this.write();
  }

  /** Notes jobs that were stored in the live table. */
  noteLive(jobs: readonly { readonly tenant: string }[]): void {
    if (this.tenants?.size === 0) return;
    for (const { tenant } of jobs) this.note(tenant, 1, 0);
  }

  stop(): void {
    this.isOver = true;
  }

  private async write(): Promise<void> {
    this.isWriting = true;
    // What is noted in the same iteration of the event loop is written together.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.added.size > 0 && !this.isOver) {
      let left: AddedCounts[] = Array.from(this.added, ([tenant, counts]) => ({ tenant, ...counts }));
      this.added = new Map();
      try {
        const locked = new Set(await addUsage(this.pool, left));
        left = left.filter(({ tenant }) => locked.has(tenant));
        for (; left.length > 0; left = left.slice(1)) await addUsageOfOne(this.pool, left[0]!);
      } catch (error) {
        this.log.warn(
          { error: messageOf(error) },
          'jobs could not be counted for the quotas of their tenants',
        );
        for (const { tenant, live, later } of left) this.note(tenant, live, later);
        await pause(PAUSE_MS, undefined, { ref: false });
      }
    }
    this.isWriting = false;
  }
}
