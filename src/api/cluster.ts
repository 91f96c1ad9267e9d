import { parseDuration } from '../core/duration.js';
import { BOUNDS, percentile } from '../core/histogram.js';
import { ClusterView, StatsView } from '../core/schemas/cluster.js';
import { StatsQuery } from '../core/schemas/query.js';
import type * as wire from '../core/wire.js';
import { COUNTERS } from '../core/wire.js';
import { countTerms, listNodes, readClusterState } from '../store/cluster-state.js';
import { lookAtLease } from '../store/lease.js';
import type { Requested } from '../store/requested.js';
import { type MinuteTally, readMinutes, readTotals, sumTallies, type Tally } from '../store/tallies.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { answerOf } from './idempotency.js';
import { type Answered, JsonText } from './json-text.js';
import { type Route, route } from './route.js';
import type { Shard } from './shard.js';

/** Silence after which a node counts as dead: three signs of life are missing. */
const DEAD_AFTER_MS = 15_000;

const MINUTE_MS = 60_000;
/** Minutes of history that one statement reads. */
const MINUTES_AT_ONCE = 360;

/** The cluster as a whole: who leads, the pause switch, statistics. */
export const clusterRoutes: readonly Route[] = [
  route({
    id: 'getCluster',
    method: 'GET',
    path: '/v1/cluster',
    tag: 'cluster',
    summary: 'Shards with their leaders, and the nodes. A tenant is told only whether all is well.',
    scope: 'read',
    answers: { 200: ClusterView },
    run: async ({ node, caller }) => {
      const view = await viewCluster(node);
      return caller.operator ? view : { ...view, shards: [], nodes: [] };
    },
  }),
  pausing('pause', true, 'Stop dispatch everywhere; running jobs go on.'),
  pausing('resume', false, 'Start dispatch again.'),
  route({
    id: 'getStats',
    method: 'GET',
    path: '/v1/stats',
    tag: 'cluster',
    summary:
      'Totals that survive failovers; with `history`, also by the minute. A tenant is told its own, an operator who names none those of all.',
    scope: 'read',
    query: StatsQuery,
    answers: { 200: StatsView },
    run: ({ node, caller, query: { history = '0s' } }) =>
      readStats(node, caller, parseDuration(history) ?? 0),
  }),
];

function pausing(verb: 'pause' | 'resume', paused: boolean, summary: string): Route {
  return route({
    id: `${verb}Cluster`,
    audit: `cluster.${verb}`,
    method: 'POST',
    path: `/v1/cluster/${verb}`,
    tag: 'cluster',
    summary: `${summary} Already so: 409.`,
    scope: 'operator',
    answers: { 200: ClusterView },
    idempotent: true,
    run: async ({ node, caller, call }) => {
      // A leader that is elsewhere is known before any of them has done anything.
      const leaders = await Promise.all(node.shards.map((shard) => shard.leader()));
      const home = node.shardOf(caller.tenant);
      const pause = async ({ author, keep }: Requested<void>) => {
        // Every shard is written to by itself: the answer is kept in the caller's.
        const pauseOne = (i: number) =>
          leaders[i]!.settings.pause(paused, { author, keep: node.shards[i] === home ? keep : undefined });
        await Promise.all(leaders.map((_, i) => pauseOne(i)));
      };
      // Other connections do not see the change before its commit.
      return answerOf(home, call, pause, async () => ({ ...(await viewCluster(node)), paused }));
    },
  });
}

async function viewCluster({ shards }: NodeContext): Promise<wire.ClusterView> {
  const [nodes, ...states] = await Promise.all([listNodes(shards[0].pool), ...shards.map(readState)]);
  // Nodes say that they live on the clock of the first shard's database, where their list is.
  const { now } = states[0]!;
  return {
    ok: states.every(({ view }) => view.leader !== null),
    shards: states.map(({ view }) => view),
    nodes: nodes.map((node) => ({
      id: node.id,
      url: node.url,
      state: now - node.lastSeen < DEAD_AFTER_MS ? 'alive' : 'dead',
      version: node.version,
      leads: states.filter(({ view }) => view.leader === node.id).map(({ view }) => view.id),
      lastSeen: new Date(node.lastSeen).toISOString(),
    })),
    paused: states.some(({ paused }) => paused),
  };
}

/** A shard as its database shows it, and the time there. */
async function readState({ id, pool }: Shard) {
  const [lease, terms, { paused }] = await Promise.all([
    lookAtLease(pool, id),
    countTerms(pool, id),
    readClusterState(pool),
  ]);
  const leader = lease.expired || lease.holder === '' ? null : lease.holder;
  const expiresAt = new Date(lease.expiresAt ?? 0).toISOString();
  return { now: lease.now, paused, view: { id, leader, epoch: lease.epoch, expiresAt, terms } };
}

async function readStats(
  node: NodeContext,
  caller: Caller,
  historyMs: number,
): Promise<Answered<wire.StatsView>> {
  const { shards, nodeId, loopDelay } = node;
  const { clock } = shards[0];
  const tenant = caller.allTenants ? null : caller.tenant;
  const totals = await totalsOf(shards, tenant);
  const stats = {
    ...toCounts(totals),
    lateness: toLateness(totals.lateness),
    ...(caller.operator && { node: { id: nodeId, loopDelay: toLateness(loopDelay.counts) } }),
  };
  if (historyMs <= 0) return stats;
  const until = clock.now() + MINUTE_MS;
  const minutes: string[] = [];
  let from = clock.now() - historyMs;
  while (from < until) {
    // Portions end at whole minutes, so that no minute is in two of them.
    const to = Math.min(until, Math.floor(from / MINUTE_MS + MINUTES_AT_ONCE) * MINUTE_MS);
    for (const minute of await minutesOf(shards, tenant, from, to)) minutes.push(minuteText(minute));
    from = to;
  }
  return new StatsText(stats, minutes);
}

/** What all shards together have counted so far, of one tenant or of all. */
export async function totalsOf(shards: readonly Shard[], tenant: string | null): Promise<Tally> {
  return sumTallies(await Promise.all(shards.map(({ pool }) => readTotals(pool, tenant))));
}

/** Minutes of all shards together, oldest first. */
async function minutesOf(
  shards: readonly Shard[],
  tenant: string | null,
  from: number,
  to: number,
): Promise<MinuteTally[]> {
  const read = await Promise.all(shards.map(({ pool }) => readMinutes(pool, tenant, from, to)));
  const byMinute = new Map<number, MinuteTally[]>();
  for (const tally of read.flat()) byMinute.set(tally.minute, [...(byMinute.get(tally.minute) ?? []), tally]);
  const sums = Array.from(byMinute, ([minute, tallies]) => ({ ...sumTallies(tallies), minute }));
  return sums.sort((a, b) => a.minute - b.minute);
}

/** Totals with their history. */
class StatsText extends JsonText {
  readonly text: string;

  constructor(stats: wire.StatsView, minutes: readonly string[]) {
    super();
    this.text = `${JSON.stringify(stats).slice(0, -1)},"history":[${minutes.join(',')}]}`;
  }
}

function minuteText(minute: MinuteTally): string {
  return JSON.stringify({
    minute: new Date(minute.minute).toISOString(),
    ...toCounts(minute),
    lateness: toLateness(minute.lateness),
  });
}

function toCounts(tally: Tally): wire.Counts {
  return Object.fromEntries(COUNTERS.map((counter) => [counter, tally[counter]])) as Record<
    (typeof COUNTERS)[number],
    number
  >;
}

function toLateness(histogram: readonly number[]): wire.LatenessView {
  const last = histogram.findLastIndex((count) => count > 0);
  return {
    count: histogram.reduce((sum, count) => sum + count, 0),
    p50Ms: percentile(histogram, 0.5),
    p90Ms: percentile(histogram, 0.9),
    p99Ms: percentile(histogram, 0.99),
    maxMs: last < 0 ? null : BOUNDS[Math.min(last, BOUNDS.length - 1)]!,
  };
}
