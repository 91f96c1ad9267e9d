import type { Static } from 'typebox';
import { LeaderElsewhere } from '../cluster/leader-elsewhere.js';
import { type Figures, mergeFigures } from '../core/figures.js';
import { greatest } from '../core/long-lists.js';
import { HealthView } from '../core/schemas/cluster.js';
import { AnyQuery, ReadyQuery } from '../core/schemas/query.js';
import { totalsOf } from './cluster.js';
import type { NodeContext } from './context.js';
import { renderMetrics } from './metrics.js';
import { Answer, type Route, route } from './route.js';
import type { Shard } from './shard.js';

/** Liveness, readiness and metrics of a node. */
export const healthRoutes: readonly Route[] = [
  route({
    id: 'livez',
    method: 'GET',
    path: '/livez',
    tag: 'health',
    summary: 'Answers while the process lives.',
    scope: 'public',
    query: AnyQuery,
    answers: { 200: HealthView },
    run: () => ({ ok: true }),
  }),
  route({
    id: 'readyz',
    method: 'GET',
    path: '/readyz',
    tag: 'health',
    summary: 'Whether the node can be used; `?verbose` lists, for operators, what was looked at.',
    scope: 'public',
    query: ReadyQuery,
    answers: { 200: HealthView, 503: HealthView },
    run: async ({ node, query: { verbose = 'false' }, call }) => {
      const { ok, checks } = await checkReady(node);
      const isTold = verbose !== 'false' && (await call.bringsOperatorKey());
      return new Answer(ok ? 200 : 503, isTold ? { ok, checks } : { ok });
    },
  }),
  route({
    id: 'metrics',
    method: 'GET',
    path: '/metrics',
    tag: 'health',
    summary:
      'Metrics in the text format of Prometheus: of all tenants for an operator, else the counters of the tenant.',
    scope: 'read',
    answers: {
      200: {
        kind: 'text',
        type: 'text/plain; version=0.0.4; charset=utf-8',
        description: 'Metrics as text.',
      },
    },
    run: async ({ node, caller }) => {
      const { shards, loopDelay, refusals } = node;
      // The figures of leaders are not kept by tenant, and name the queues and tasks of all of them.
      if (!caller.operator) return renderMetrics(await totalsOf(shards, caller.tenant), null, null);
      const [totals, figures] = await Promise.all([totalsOf(shards, null), figuresOf(shards)]);
      const epochs = shards.map((shard) => shard.currentLeader()?.epoch ?? shard.lease()?.epoch ?? 0);
      const leads = shards.some((shard) => shard.currentLeader() !== undefined);
      return renderMetrics(totals, figures, {
        ...{ leads, epoch: greatest(epochs), loopDelay, refusals: refusals.counts },
      });
    },
  }),
];

/** The figures of all leaders together; null if one of them cannot be asked, because a part would be wrong. */
async function figuresOf(shards: readonly Shard[]): Promise<Figures | null> {
  const all = await Promise.all(shards.map((shard) => shard.figures()));
  const known = all.filter((figures) => figures !== null);
  return known.length < all.length ? null : mergeFigures(known);
}

type Health = Required<Static<typeof HealthView>>;

/** A node is ready when all its shards are. Where one is not, its checks are shown, else those of the first. */
async function checkReady({ shards, config }: NodeContext): Promise<Health> {
  const healths = await Promise.all(shards.map((shard) => checkShard(shard, config.leaseTtl)));
  return healths.find(({ ok }) => !ok) ?? healths[0]!;
}

/**
 * Ready means that the database answers and that requests reach a leader, here or elsewhere. Whether the database
 * answers is known from the connection of the lease, which is used all the time and shared with nothing else. So no
 * traffic makes a healthy node seem unready, and the check costs nothing.
 */
async function checkShard(shard: Shard, leaseTtlMs: number): Promise<Health> {
  const silentMs = shard.databaseSilentMs();
  const database =
    silentMs === null
      ? { ok: false, detail: 'no connection' }
      : { ok: silentMs < leaseTtlMs, detail: `answered ${Math.round(silentMs)} ms ago` };
  if (!database.ok)
    return { ok: false, checks: { database, leader: { ok: false, detail: 'not known without a database' } } };
  const leader = await shard.leader().then(
    () => ({ ok: true, detail: 'this node leads' }),
    (error: unknown) =>
      error instanceof LeaderElsewhere
        ? { ok: true, detail: `the leader is at ${error.url}` }
        : { ok: false, detail: 'no leader at the moment' },
  );
  return { ok: leader.ok, checks: { database, leader } };
}
