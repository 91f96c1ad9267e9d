import type { KeyLimits } from '../core/access.js';
import { Top } from '../core/top.js';
import type { Gate, WaitingView } from '../core/wire.js';
import type { LeaderState } from './leader-state.js';
import type { QueueShare, SegmentGroup } from './queue-share.js';
import type { Segment } from './segment.js';

const MINUTE_MS = 60_000;
/** Queues that are named for each reason. */
const MOST_NAMED = 5;

interface Summing {
  jobs: number;
  oldestReadyMs: number;
  readonly queues: Map<string, number>;
}

/** What waits in the memory of the leader, and for what. It is read in time slices, because there may be very much. */
export class WaitingJobs {
  constructor(private readonly state: LeaderState) {}

  /** The waiting jobs of a tenant, or of all, by what keeps the first of their queue from starting. */
  async byReason(tenant: string | null, limits: KeyLimits | null): Promise<WaitingView> {
    const { state } = this;
    const now = state.clock.now();
    const reasons = new Map<Gate, Summing>();
    const add = (reason: Gate, queue: string, jobs: number, oldestReadyMs: number) => {
      if (jobs === 0) return;
      const sum = reasons.get(reason) ?? { jobs: 0, oldestReadyMs: 0, queues: new Map() };
      sum.jobs += jobs;
      sum.oldestReadyMs = Math.max(sum.oldestReadyMs, oldestReadyMs);
      sum.queues.set(queue, (sum.queues.get(queue) ?? 0) + jobs);
      reasons.set(reason, sum);
    };
    const isWithin = (queue: string) => !limits?.queues || limits.queues.includes(queue);
    let running = 0;
    await state.shares.eachShare((share) => {
      if (isWithin(share.info.name)) running += share.running;
    }, tenant);
    let complete = true;
    await state.shares.eachGroup((share, group) => {
      const { name } = share.info;
      if (!isWithin(name)) return;
      for (const segment of group.lanes.values()) {
        if (segment.hasUnread) complete = false;
        const { readyCount: ready } = segment;
        add('due-time', name, segment.size - ready, 0);
        const oldest = segment.head()?.runAt ?? now;
        add(this.reasonOf(share, group, segment), name, ready, Math.max(0, now - oldest));
      }
    }, tenant);
    const data = Array.from(reasons, ([reason, { jobs, oldestReadyMs, queues }]) => {
      const top = new Top<{ readonly queue: string; readonly jobs: number }>(
        MOST_NAMED,
        (a, b) => a.jobs > b.jobs,
      );
      for (const [queue, count] of queues) top.add({ queue, jobs: count });
      return { reason, jobs, oldestReadyMs, queues: top.take() };
    });
    return { data: data.sort((a, b) => b.jobs - a.jobs), next: null, running, complete };
  }

  /** What keeps the first job of a segment from starting, as far as memory tells it at once. */
  private reasonOf(share: QueueShare, group: SegmentGroup, segment: Segment): Gate {
    if (this.state.paused) return 'cluster-paused';
    if (share.info.paused) return 'queue-paused';
    if (group.unservedSince !== null) return 'no-fitting-worker';
    if (segment.parkedAt !== null || share.isSaturated) return 'limit';
    if (share.timer !== undefined) return 'rate';
    return 'no-free-slot';
  }

  /** How many jobs in memory become due in each of the minutes ahead, and whether the table may have more. */
  async upcoming(
    tenant: string | null,
    from: number,
    minutes: number,
  ): Promise<{ readonly counts: readonly number[]; readonly complete: boolean }> {
    const counts = Array.from({ length: minutes }, () => 0);
    let complete = true;
    await this.state.shares.eachGroup((_, group) => {
      for (const segment of group.lanes.values()) {
        if (segment.hasUnread) complete = false;
        segment.eachUpcoming(({ runAt }) => {
          const minute = Math.floor((runAt - from) / MINUTE_MS);
          if (minute >= 0 && minute < minutes) counts[minute]! += 1;
        });
      }
    }, tenant);
    return { counts, complete };
  }
}
