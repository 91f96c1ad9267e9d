/**
 * The rate of submissions of one tenant at one node: a token bucket that fills at this node's share of the quota. The share
 * follows what all nodes were asked for, so that together they keep to the quota; until that is known it is all of it.
 */
export class SubmissionRate {
  private tokens: number;
  private share: number;
  /** Jobs that this node was asked to take since it last told the leader. */
  private asked = 0;

  constructor(
    private limit: number,
    private since: number,
  ) {
    this.tokens = limit;
    this.share = limit;
  }

  /** Takes room for jobs at a moment; answers 0, or after how many milliseconds it makes sense to try again. */
  take(jobs: number, now: number): number {
    this.asked += jobs;
    this.fill(now);
    if (jobs <= this.tokens) {
      this.tokens -= jobs;
      return 0;
    }
    return Math.max(1, Math.ceil(((jobs - this.tokens) * 1_000) / this.share));
  }

  /** Gives room back that was taken for jobs that were not stored. */
  giveBack(jobs: number): void {
    this.tokens = Math.min(this.limit, this.tokens + jobs);
  }

  /** Another quota from now on. */
  limitTo(limit: number, now: number): void {
    if (limit === this.limit) return;
    this.fill(now);
    this.share = Math.max(1, (this.share * limit) / this.limit);
    this.limit = limit;
    this.tokens = Math.min(limit, this.tokens);
  }

  /** What this node was asked for since the last call. */
  takeAsked(): number {
    const { asked } = this;
    this.asked = 0;
    return asked;
  }

  /** Sets this node's share by what it was asked for, and all nodes together were, in the same time. */
  shareOf(mine: number, total: number, now: number): void {
    this.fill(now);
    this.share = total <= this.limit || total <= mine ? this.limit : (this.limit * mine) / total;
    this.share = Math.max(this.share, this.limit / MOST_NODES);
  }

  private fill(now: number): void {
    this.tokens = Math.min(this.limit, this.tokens + (Math.max(0, now - this.since) * this.share) / 1_000);
    this.since = now;
  }
}

/** No share is smaller than the quota divided by this, so that a node that was asked for little is not shut out. */
const MOST_NODES = 20;

/** How long the word of a node counts. */
const HEARD_FOR_MS = 3_000;

/** What nodes were asked for lately, added up by the leader. */
export class SubmissionTotals {
  private readonly tenants = new Map<string, Map<string, { readonly asked: number; readonly at: number }>>();

  /** Notes what a node was asked for in the last second, by tenant; answers with the totals over all nodes. */
  hear(node: string, asked: Readonly<Record<string, number>>, now: number): Record<string, number> {
    const totals: Record<string, number> = {};
    for (const [tenant, jobs] of Object.entries(asked)) {
      const nodes = this.tenants.get(tenant) ?? new Map();
      nodes.set(node, { asked: jobs, at: now });
      this.tenants.set(tenant, nodes);
      let total = 0;
      for (const [id, said] of nodes) {
        if (now - said.at > HEARD_FOR_MS) nodes.delete(id);
        else total += said.asked;
      }
      totals[tenant] = total;
    }
    this.forgetOld(now);
    return totals;
  }

  private forgetOld(now: number): void {
    if (this.tenants.size < FORGET_ABOVE) return;
    for (const [tenant, nodes] of this.tenants) {
      if ([...nodes.values()].every(({ at }) => now - at > HEARD_FOR_MS)) this.tenants.delete(tenant);
    }
  }
}

const FORGET_ABOVE = 1_000;
