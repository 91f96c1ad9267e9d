import { PunctualError } from '../../core/errors.js';
import { BOUNDS, percentile } from '../../core/histogram.js';
import {
  type ClusterView,
  COUNTERS,
  type Counts,
  type LatenessView,
  type StatsView,
} from '../../core/wire.js';
import { countTerms, listNodes, readClusterState } from '../../store/cluster-state.js';
import { lookAtLease } from '../../store/lease.js';
import { readMinutes, readTotals, type Tally } from '../../store/tallies.js';
import type { NodeContext } from '../context.js';
import { type Answered, JsonText } from '../json-text.js';
import { renderMetrics } from '../metrics.js';
import type { Caller, ClusterUseCases } from '../use-cases.js';

/** A node that has not been seen for so long is dead: three times it did not say that it lives. */
const DEAD_AFTER_MS = 15_000;

const MINUTE_MS = 60_000;
/** Minutes of history that are read at once. */
const MINUTES_AT_ONCE = 360;

/** The cluster as a whole: who leads, the pause switch, statistics. */
export class Cluster implements ClusterUseCases {
  constructor(private readonly node: NodeContext) {}

  async view(_caller: Caller): Promise<ClusterView> {
    const { pool, shard } = this.node;
    const [lease, nodes, terms, state] = await Promise.all([
      lookAtLease(pool, shard),
      listNodes(pool),
      countTerms(pool, shard),
      readClusterState(pool),
    ]);
    const leader = lease.expired || lease.holder === '' ? null : lease.holder;
    const expiresAt = new Date(lease.expiresAt ?? 0).toISOString();
    return {
      shards: [{ id: shard, leader, epoch: lease.epoch, expiresAt, terms }],
      nodes: nodes
        .filter((node) => lease.now - node.lastSeen < DEAD_AFTER_MS)
        .map((node) => ({
          id: node.id,
          url: node.url,
          version: node.version,
          leads: node.id === leader ? [shard] : [],
          lastSeen: new Date(node.lastSeen).toISOString(),
        })),
      paused: state.paused,
    };
  }

  async pause(caller: Caller): Promise<ClusterView> {
    return this.setPaused(caller, true);
  }

  async resume(caller: Caller): Promise<ClusterView> {
    return this.setPaused(caller, false);
  }

  async stats(_caller: Caller, historyMs: number): Promise<Answered<StatsView>> {
    const { pool, clock, nodeId, loopDelay } = this.node;
    const totals = await readTotals(pool, null);
    const stats = {
      ...toCounts(totals),
      lateness: toLateness(totals.lateness),
      node: { id: nodeId, loopDelay: toLateness(loopDelay.counts) },
    };
    if (historyMs <= 0) return stats;
    const until = clock.now() + MINUTE_MS;
    const minutes: string[] = [];
    let from = clock.now() - historyMs;
    while (from < until) {
      // Each portion ends with a minute, so that none is in two of them.
      const to = Math.min(until, Math.floor(from / MINUTE_MS + MINUTES_AT_ONCE) * MINUTE_MS);
      for (const minute of await readMinutes(pool, null, from, to)) minutes.push(minuteText(minute));
      from = to;
    }
    return new StatsText(stats, minutes);
  }

  async metrics(): Promise<string> {
    const totals = await readTotals(this.node.pool, null);
    const leader = this.node.currentLeader();
    const epoch = leader?.epoch ?? this.node.lease()?.epoch ?? 0;
    const gauges = { ...leader?.gauges(), epoch };
    return renderMetrics(totals, gauges, leader !== undefined, this.node.loopDelay);
  }

  private async setPaused(caller: Caller, paused: boolean): Promise<ClusterView> {
    if (!caller.operator)
      throw new PunctualError('FORBIDDEN', 'Only an operator may stop or start dispatch for all tenants.');
    await (await this.node.leader()).governing.pause(paused);
    return this.view(caller);
  }
}

/** Totals with their history. */
class StatsText extends JsonText {
  readonly text: string;

  constructor(stats: StatsView, minutes: readonly string[]) {
    super();
    this.text = `${JSON.stringify(stats).slice(0, -1)},"history":[${minutes.join(',')}]}`;
  }
}

function minuteText(minute: Tally & { readonly minute: number }): string {
  return JSON.stringify({
    minute: new Date(minute.minute).toISOString(),
    ...toCounts(minute),
    lateness: toLateness(minute.lateness),
  });
}

function toCounts(tally: Tally): Counts {
  return Object.fromEntries(COUNTERS.map((counter) => [counter, tally[counter]])) as Record<
    (typeof COUNTERS)[number],
    number
  >;
}

function toLateness(histogram: readonly number[]): LatenessView {
  const last = histogram.findLastIndex((count) => count > 0);
  return {
    count: histogram.reduce((sum, count) => sum + count, 0),
    p50Ms: percentile(histogram, 0.5),
    p90Ms: percentile(histogram, 0.9),
    p99Ms: percentile(histogram, 0.99),
    maxMs: last < 0 ? null : BOUNDS[Math.min(last, BOUNDS.length - 1)]!,
  };
}
