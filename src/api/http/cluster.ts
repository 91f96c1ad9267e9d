import type { FastifyInstance } from 'fastify';
import { parseDuration } from '../../core/duration.js';
import { ClusterView, StatsView } from '../../core/schemas/cluster.js';
import { NoQuery, StatsQuery } from '../../core/schemas/query.js';
import { callerOf } from './access.js';
import { expectNothing, queryOf } from './input.js';
import type { RouteParts } from './route-parts.js';

const STEERING = [
  ['pause', 'Stop dispatch everywhere; running jobs go on.'],
  ['resume', 'Start dispatch again.'],
] as const;

/** The cluster, its pause and its figures. */
export function clusterRoutes(server: FastifyInstance, { useCases, describe }: RouteParts): void {
  server.get(
    '/v1/cluster',
    {
      schema: describe({
        id: 'getCluster',
        tag: 'cluster',
        summary: 'Shards with their leaders, and the nodes.',
        answers: { 200: ClusterView },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.cluster.view(callerOf(request));
    },
  );

  for (const [verb, summary] of STEERING) {
    server.post(
      `/v1/cluster/${verb}`,
      {
        schema: describe({
          id: `${verb}Cluster`,
          tag: 'cluster',
          summary: `${summary} Already so: 409.`,
          answers: { 200: ClusterView },
        }),
      },
      async (request) => {
        queryOf(request, NoQuery);
        expectNothing(request);
        return useCases.cluster[verb](callerOf(request));
      },
    );
  }

  server.get(
    '/v1/stats',
    {
      schema: describe({
        id: 'getStats',
        tag: 'cluster',
        summary: 'Totals that survive failovers; with `history`, also by the minute.',
        query: StatsQuery,
        answers: { 200: StatsView },
      }),
    },
    async (request) => {
      const historyMs = parseDuration(queryOf(request, StatsQuery).history ?? '0s') ?? 0;
      return useCases.cluster.stats(callerOf(request), historyMs);
    },
  );
}
