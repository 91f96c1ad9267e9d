import type { FastifyInstance, FastifyRequest } from 'fastify';
import { invalid, PunctualError } from '../../core/errors.js';
import { NAME_PATTERN, NAME_RULE } from '../../core/job.js';
import type { AttemptCredential, Caller, UseCases } from '../use-cases.js';

/** Who may call a route. A route that says nothing needs a key, so that forgetting it is safe. */

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * `public`: anyone; `key`: a key; `attempt`: a key, or the token of an attempt of the job in the path;
     * `node`: another node of the cluster.
     */
    access?: 'public' | 'key' | 'attempt' | 'node';
  }
  interface FastifyRequest {
    /** Who asks; null until the credential is checked, and on public routes. */
    credential: Caller | AttemptCredential | null;
  }
}

const BEARER = /^bearer ([\x21-\x7e]{1,4096})$/i;

/** Checks the credential of every request before a byte of its body is read. */
export function requireCredentials(server: FastifyInstance, useCases: UseCases, defaultTenant: string): void {
  server.decorateRequest('credential', null);
  server.addHook('onRequest', async (request) => {
    const access = request.routeOptions.config.access ?? 'key';
    if (access === 'public') return;
    const bearer = BEARER.exec(request.headers.authorization ?? '')?.[1];
    if (bearer === undefined) {
      throw new PunctualError('UNAUTHENTICATED', 'Send a key in the header authorization: Bearer KEY.');
    }
    const identity = await useCases.authenticate(bearer);
    if (identity === null) throw new PunctualError('UNAUTHENTICATED', 'The key is not known.');
    if (access === 'node' && !('node' in identity && identity.node)) {
      throw new PunctualError('FORBIDDEN', 'Only nodes of the cluster may call this.');
    }
    if ('jobId' in identity) {
      refuseOtherJobs(request, identity, access);
      request.credential = identity;
    } else {
      request.credential = actFor(request, identity, defaultTenant);
    }
  });
}

/** Whether a request to a public route brings a key, so that it may be told more than anybody. */
export async function bringsKey(request: FastifyRequest, useCases: UseCases): Promise<boolean> {
  const bearer = BEARER.exec(request.headers.authorization ?? '')?.[1];
  if (bearer === undefined) return false;
  // Whose key cannot be looked up at the moment is anybody.
  const identity = await useCases.authenticate(bearer).catch(() => null);
  return identity !== null && !('jobId' in identity);
}

/** The caller of a route that needs a key. */
export function callerOf(request: FastifyRequest): Caller {
  const { credential } = request;
  if (credential === null || 'jobId' in credential) throw new Error('the route let an unchecked caller in');
  return credential;
}

/** The caller of a route that also takes the token of an attempt. */
export function reporterOf(request: FastifyRequest): Caller | AttemptCredential {
  if (request.credential === null) throw new Error('the route let an unchecked caller in');
  return request.credential;
}

function refuseOtherJobs(request: FastifyRequest, token: AttemptCredential, access: string): void {
  const { id } = request.params as { id?: string };
  if (access !== 'attempt' || id !== token.jobId) {
    throw new PunctualError('FORBIDDEN', 'The token of an attempt can report about its own job only.');
  }
}

function actFor(
  request: FastifyRequest,
  key: { readonly operator: boolean; readonly name: string },
  defaultTenant: string,
): Caller {
  // A key that is not an operator's must bring its tenant along; guessing one would open another's door.
  if (!key.operator) throw new PunctualError('FORBIDDEN', 'The key belongs to no tenant.');
  const tenant = request.headers['punctual-tenant'] ?? defaultTenant;
  if (typeof tenant !== 'string' || !NAME_PATTERN.test(tenant)) {
    throw invalid([{ pointer: '/punctual-tenant', detail: NAME_RULE }]);
  }
  return { tenant, actor: key.name, operator: true };
}
