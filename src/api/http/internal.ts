import type { FastifyInstance } from 'fastify';
import type { EndsChange } from '../use-cases.js';
import type { RouteParts } from './route-parts.js';

const MAX_HINT_BYTES = 16 * 1024 * 1024;

/** What nodes say to each other. Not part of the public interface. */
export function internalRoutes(server: FastifyInstance, { useCases, longPolls }: RouteParts): void {
  server.get(
    '/internal/ends/:line',
    { config: { access: 'node' }, schema: { hide: true } },
    async (request, reply) => {
      const { line } = request.params as { line: string };
      const over = useCases.peers.openEnds(line, (said) => reply.raw.write(`${JSON.stringify(said)}\n`));
      reply.hijack();
      reply.raw.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders();
      await longPolls.run(reply, 'nodes', (gone) => firstOf(over, gone));
      useCases.peers.closeEnds(line);
      reply.raw.end();
    },
  );

  server.post(
    '/internal/ends/:line',
    { config: { access: 'node' }, schema: { hide: true } },
    async (request, reply) => {
      const { line } = request.params as { line: string };
      await useCases.peers.changeEnds(line, request.body as EndsChange);
      return reply.code(204).send();
    },
  );

  server.post(
    '/internal/hints',
    {
      bodyLimit: MAX_HINT_BYTES,
      config: { access: 'node', bodyLists: ['jobs'] },
      schema: { hide: true },
    },
    async (request, reply) => {
      await useCases.peers.hint(request.body);
      return reply.code(204).send();
    },
  );

  server.post(
    '/internal/lease-changed',
    { config: { access: 'node' }, schema: { hide: true } },
    async (_request, reply) => {
      useCases.peers.lookAtLease();
      return reply.code(204).send();
    },
  );

  server.post(
    '/internal/node-joined',
    { config: { access: 'node' }, schema: { hide: true } },
    async (_request, reply) => {
      useCases.peers.lookAtNodes();
      return reply.code(204).send();
    },
  );
}

/** Resolves when one of the signals aborts. */
function firstOf(...signals: readonly AbortSignal[]): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of signals) {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    }
  });
}
