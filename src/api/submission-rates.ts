import { overQuota } from '../core/quotas.js';
import { SubmissionRate } from '../core/submission-rate.js';

/** How often a node tells the leader what it was asked for. */
const TELL_EVERY_MS = 1_000;
/** A tenant that submits nothing for so many rounds is forgotten; by then its bucket is full. */
const FORGOTTEN_AFTER = 10;
/** Tenants of one call to the leader. */
const MAX_TOLD = 10_000;

/** What a node was asked for, or all nodes were, by tenant. */
export type Asked = Record<string, number>;

interface Limited {
  readonly rate: SubmissionRate;
  quiet: number;
}

/**
 * The rates of submissions of tenants with such a quota, at this node. The nodes agree by telling the leader once a second what
 * they were asked for; without a leader each goes on with the share it has. Nothing is said while nobody submits.
 */
export class SubmissionRates {
  private readonly tenants = new Map<string, Limited>();
  private timer: NodeJS.Timeout | undefined;
  private isClosed = false;

  constructor(
    /** Tells the leader, and answers with the totals over all nodes; null if that was not possible. */
    private readonly tell: (asked: Asked) => Promise<Asked | null>,
  ) {}

  /** Takes room for jobs; throws QUOTA_EXCEEDED. Answers with a function that gives it back. */
  take(tenant: string, limit: number, jobs: number): () => void {
    const now = performance.now();
    let limited = this.tenants.get(tenant);
    if (!limited) {
      limited = { rate: new SubmissionRate(limit, now), quiet: 0 };
      this.tenants.set(tenant, limited);
    }
    const { rate } = limited;
    rate.limitTo(limit, now);
    limited.quiet = 0;
    if (!this.isClosed) this.timer ??= setTimeout(() => void this.agree(), TELL_EVERY_MS).unref();
    const waitMs = rate.take(jobs, now);
    if (waitMs === 0) return () => rate.giveBack(jobs);
    const isHopeless = jobs > limit;
    const detail = isHopeless
      ? `Tenant ${tenant} may submit ${limit} jobs in a second, and so no more than that in a request.`
      : `Tenant ${tenant} may submit ${limit} jobs in a second.`;
    throw overQuota('submissionsPerSecond', limit, detail, isHopeless ? undefined : waitMs / 1_000);
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  /** Tells what was asked for in the last second, and takes the share that follows from it. */
  private async agree(): Promise<void> {
    const asked: Asked = {};
    for (const [tenant, limited] of this.tenants) {
      if (Object.keys(asked).length >= MAX_TOLD) break;
      asked[tenant] = limited.rate.takeAsked();
      limited.quiet = asked[tenant] === 0 ? limited.quiet + 1 : 0;
    }
    const totals = await this.tell(asked);
    const now = performance.now();
    for (const [tenant, total] of Object.entries(totals ?? {})) {
      const mine = asked[tenant];
      if (mine !== undefined) this.tenants.get(tenant)?.rate.shareOf(mine, total, now);
    }
    for (const [tenant, { quiet }] of this.tenants) if (quiet >= FORGOTTEN_AFTER) this.tenants.delete(tenant);
    this.timer = undefined;
    if (this.tenants.size > 0 && !this.isClosed)
      this.timer = setTimeout(() => void this.agree(), TELL_EVERY_MS).unref();
  }
}
