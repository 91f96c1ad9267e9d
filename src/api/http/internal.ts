import type { FastifyInstance } from 'fastify';
import type { RouteParts } from './route-parts.js';

const MAX_HINT_BYTES = 16 * 1024 * 1024;

/** What nodes say to each other. Not part of the public interface. */
export function internalRoutes(server: FastifyInstance, { useCases }: RouteParts): void {
  server.post(
    '/internal/hints',
    { bodyLimit: MAX_HINT_BYTES, config: { access: 'node' }, schema: { hide: true } },
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
