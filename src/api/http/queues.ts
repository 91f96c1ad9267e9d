import type { FastifyInstance } from 'fastify';
import { QueueChange } from '../../core/schemas/limits.js';
import { NamePath, NoQuery, ShortListQuery } from '../../core/schemas/query.js';
import { QueuePage, QueueView } from '../../core/schemas/queue.js';
import { callerOf } from './access.js';
import { expectNothing, nameOf, queryOf } from './input.js';
import type { RouteParts } from './route-parts.js';

const DEFAULT_LIMIT = 1_000;

const STEERING = [
  ['pause', 'Stop handing out jobs of a queue; running ones go on.'],
  ['resume', 'Hand out jobs of a queue again.'],
] as const;

/** Queues, and their pause. */
export function queueRoutes(server: FastifyInstance, { useCases, describe }: RouteParts): void {
  server.get(
    '/v1/queues',
    {
      schema: describe({
        id: 'listQueues',
        tag: 'queues',
        summary: 'List the queues by name.',
        query: ShortListQuery,
        answers: { 200: QueuePage },
      }),
    },
    async (request) => {
      const { limit = DEFAULT_LIMIT, ...filter } = queryOf(request, ShortListQuery);
      return useCases.queues.list(callerOf(request), { ...filter, limit });
    },
  );

  server.get(
    '/v1/queues/:name',
    {
      schema: describe({
        id: 'getQueue',
        tag: 'queues',
        summary: 'Read a queue with its figures.',
        params: NamePath,
        answers: { 200: QueueView },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.queues.get(callerOf(request), nameOf(request));
    },
  );

  server.patch(
    '/v1/queues/:name',
    {
      schema: describe({
        id: 'changeQueue',
        tag: 'queues',
        summary: 'Change the share and the limits of a queue; one that does not exist yet comes into being.',
        params: NamePath,
        body: QueueChange,
        answers: { 200: QueueView },
      }),
    },
    async (request) => {
      queryOf(request, NoQuery);
      return useCases.queues.change(callerOf(request), nameOf(request), request.body);
    },
  );

  for (const [verb, summary] of STEERING) {
    server.post(
      `/v1/queues/:name/${verb}`,
      {
        schema: describe({
          id: `${verb}Queue`,
          tag: 'queues',
          summary: `${summary} Already so: 409.`,
          params: NamePath,
          answers: { 200: QueueView },
        }),
      },
      async (request) => {
        queryOf(request, NoQuery);
        expectNothing(request);
        return useCases.queues[verb](callerOf(request), nameOf(request));
      },
    );
  }
}
