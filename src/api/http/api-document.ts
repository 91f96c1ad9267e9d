import swagger from '@fastify/swagger';
import type { FastifyInstance } from 'fastify';

/** Lets the server describe itself: the document is made from the routes, so it cannot lag behind them. */
export function documentApi(server: FastifyInstance, version: string): void {
  server.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: {
        title: 'Punctual',
        version,
        description:
          'A distributed task scheduler. Times are RFC 3339 in UTC, durations are texts such as 30s, and ' +
          'errors are application/problem+json with a stable code.',
        license: { name: 'MIT', identifier: 'MIT' },
      },
      tags: [
        { name: 'jobs', description: 'Submit, read and steer jobs.' },
        { name: 'attempts', description: 'Reports about one attempt, by a key or by its token.' },
        { name: 'workers', description: 'What workers say, and what is known about them.' },
        { name: 'queues', description: 'Named lanes of a tenant.' },
        { name: 'schedules', description: 'When tasks run, and the ledger of what became of it.' },
        { name: 'tenants', description: 'Tenants, their shares and limits.' },
        { name: 'cluster', description: 'Leaders, nodes and figures.' },
        { name: 'health', description: 'For probes and monitoring.' },
      ],
      components: {
        securitySchemes: {
          key: {
            type: 'http',
            scheme: 'bearer',
            description:
              'A key. An operator key acts for the tenant in the header punctual-tenant, or for `default`.',
          },
          attemptToken: {
            type: 'http',
            scheme: 'bearer',
            description: 'The token of an attempt; it can report about its own job only.',
          },
        },
      },
    },
    refResolver: { buildLocalReference: (schema) => String(schema.$id) },
  });
}
