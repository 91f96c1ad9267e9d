import Type from 'typebox';
import { COUNTERS, type Counter } from '../wire.js';
import { nullable } from './object.js';

const Time = Type.String({ format: 'date-time' });

/** Shards with their leaders, and the nodes; a tenant is shown neither, but whether all is well. */
export const ClusterView = Type.Object(
  {
    ok: Type.Boolean({ description: 'Whether every shard has a leader.' }),
    shards: Type.Array(
      Type.Object({
        id: Type.Integer(),
        leader: nullable(Type.String()),
        epoch: Type.Integer(),
        expiresAt: Time,
        terms: Type.Integer(),
      }),
    ),
    nodes: Type.Array(
      Type.Object({
        id: Type.String(),
        url: Type.String(),
        state: Type.Enum(['alive', 'dead'], { type: 'string' }),
        leads: Type.Array(Type.Integer()),
        lastSeen: Time,
        version: Type.String(),
      }),
    ),
    paused: Type.Boolean(),
  },
  { title: 'Cluster' },
);

const Lateness = Type.Object(
  {
    count: Type.Integer(),
    p50Ms: nullable(Type.Number()),
    p90Ms: nullable(Type.Number()),
    p99Ms: nullable(Type.Number()),
    maxMs: nullable(Type.Number()),
  },
  {
    title: 'Lateness',
    description:
      'From a histogram: each is the upper bound of the bucket that holds the true value, so the true value is at most that.',
  },
);

const count = Type.Integer({ minimum: 0 });
const counts = Object.fromEntries(COUNTERS.map((name) => [name, count])) as Record<Counter, typeof count>;

/** Totals that survive failovers, and their history by the minute when asked for. */
export const StatsView = Type.Object(
  {
    ...counts,
    lateness: Lateness,
    node: Type.Optional(
      Type.Object(
        { id: Type.String(), loopDelay: Lateness },
        {
          description:
            'The node that answers, and how late its event loop came to its timers since its start; for operators.',
        },
      ),
    ),
    history: Type.Optional(Type.Array(Type.Object({ minute: Time, ...counts, lateness: Lateness }))),
  },
  { title: 'Stats' },
);

/** Whether a node can be used, and what was looked at. */
export const HealthView = Type.Object(
  {
    ok: Type.Boolean(),
    checks: Type.Optional(
      Type.Unsafe<Record<string, { ok: boolean; detail: string }>>({
        type: 'object',
        additionalProperties: Type.Object({ ok: Type.Boolean(), detail: Type.String() }),
      }),
    ),
  },
  { title: 'Health' },
);
