import type { FastifyInstance } from 'fastify';
import { HealthView } from '../../core/schemas/cluster.js';
import { NoQuery, ReadyQuery } from '../../core/schemas/query.js';
import { bringsKey } from './access.js';
import { queryOf } from './input.js';
import type { RouteParts } from './route-parts.js';

/** Whether the process lives, whether it can be used, and its metrics. */
export function healthRoutes(server: FastifyInstance, { useCases, describe }: RouteParts): void {
  server.get(
    '/livez',
    {
      config: { access: 'public' },
      schema: describe({
        id: 'livez',
        tag: 'health',
        summary: 'Answers while the process lives.',
        access: 'public',
        answers: { 200: HealthView },
      }),
    },
    async () => ({ ok: true }),
  );

  server.get(
    '/readyz',
    {
      config: { access: 'public' },
      schema: describe({
        id: 'readyz',
        tag: 'health',
        summary: 'Whether the node can be used; `?verbose` lists, for holders of a key, what was looked at.',
        access: 'public',
        query: ReadyQuery,
        answers: { 200: HealthView, 503: HealthView },
      }),
    },
    async (request, reply) => {
      const { verbose = 'false' } = queryOf(request, ReadyQuery);
      const { ok, checks } = await useCases.ready();
      const isTold = verbose !== 'false' && (await bringsKey(request, useCases));
      return reply.code(ok ? 200 : 503).send(isTold ? { ok, checks } : { ok });
    },
  );

  server.get(
    '/metrics',
    {
      schema: describe({
        id: 'metrics',
        tag: 'health',
        summary: 'Metrics in the text format of Prometheus.',
        answers: { 200: 'Metrics as text.' },
      }),
    },
    async (request, reply) => {
      queryOf(request, NoQuery);
      return reply.type('text/plain; version=0.0.4; charset=utf-8').send(await useCases.cluster.metrics());
    },
  );
}
