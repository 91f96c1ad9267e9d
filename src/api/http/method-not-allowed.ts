import type { FastifyInstance, HTTPMethods } from 'fastify';
import { PunctualError } from '../../core/errors.js';

const METHODS: readonly HTTPMethods[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];

/** Answers methods that a path does not have with 405 and the list of those that it has. */
export class AllowedMethods {
  private readonly byPath = new Map<string, Set<string>>();

  /** Collects the routes of a server. Must be called before they are registered. */
  constructor(private readonly server: FastifyInstance) {
    server.addHook('onRoute', ({ url, method }) => {
      const methods = this.byPath.get(url) ?? new Set();
      for (const one of [method].flat()) methods.add(one);
      this.byPath.set(url, methods);
    });
  }

  /** Registers the answer for all other methods. Must be called after all routes are registered. */
  refuseOthers(): void {
    for (const [url, taken] of [...this.byPath]) {
      const others = METHODS.filter((method) => !taken.has(method));
      if (others.length === 0) continue;
      const allow = [...taken].sort().join(', ');
      this.server.route({
        url,
        method: others,
        config: { scope: 'public' },
        // Refused here and not in the handler, so that the body is not read first.
        onRequest: (request, reply, done) => {
          reply.header('allow', allow);
          done(new PunctualError('METHOD_NOT_ALLOWED', `${request.method} is not one of ${allow}.`));
        },
        handler: () => undefined,
      });
    }
  }
}
