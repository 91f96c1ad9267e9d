import type { FastifyInstance, HTTPMethods } from 'fastify';
import { PunctualError } from '../../core/errors.js';

const METHODS: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Remembers which methods each path takes, to answer all others with 405 and the list. */
export class AllowedMethods {
  private readonly byPath = new Map<string, Set<string>>();

  /** Watches the routes of a server; to be called before they are registered. */
  constructor(private readonly server: FastifyInstance) {
    server.addHook('onRoute', ({ url, method }) => {
      const methods = this.byPath.get(url) ?? new Set();
      for (const one of [method].flat()) methods.add(one);
      this.byPath.set(url, methods);
    });
  }

  /** Registers the answer for every other method; to be called after all routes are registered. */
  refuseOthers(): void {
    for (const [url, taken] of [...this.byPath]) {
      const others = METHODS.filter((method) => !taken.has(method));
      if (others.length === 0) continue;
      const allow = [...taken].sort().join(', ');
      this.server.route({
        url,
        method: others,
        schema: { hide: true },
        config: { scope: 'public' },
        // Refused here and not in the handler, so that no body is read first.
        onRequest: (request, reply, done) => {
          reply.header('allow', allow);
          done(new PunctualError('METHOD_NOT_ALLOWED', `${request.method} is not one of ${allow}.`));
        },
        handler: () => undefined,
      });
    }
  }
}
