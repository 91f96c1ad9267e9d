import type { FastifyInstance, FastifyRequest } from 'fastify';
import { invalid, PunctualError } from '../../core/errors.js';
import { NAME_PATTERN, NAME_RULE } from '../../core/job.js';
import { type AttemptCredential, type Caller, type KeyIdentity, refusalOf, type Scope } from '../caller.js';
import { ReceiverRates } from '../receiver-rates.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The scope of the route; default an operator's key, so that forgetting it is safe. */
    scope?: Scope;
  }
  interface FastifyRequest {
    /** The caller; null until the credential is checked, and on public routes. */
    caller: Caller | AttemptCredential | null;
  }
}

/** Resolves a bearer credential; answers null when it is not valid. */
export type Authenticate = (bearer: string) => Promise<KeyIdentity | AttemptCredential | null>;

/** Whether a request belongs to the protocol of workers. One that has to wait for other calls makes its worker look dead. */
export function isOfWorker({ routeOptions }: FastifyRequest): boolean {
  const { scope } = routeOptions.config;
  return scope === 'work' || scope === 'attempt';
}

/** The tenant that an operator acts for. */
const TENANT_HEADER = 'punctual-tenant';

/** Long enough for the token of a forwarded request, which names up to forty queues and tasks. */
const BEARER = /^bearer ([\x21-\x7e]{1,12288})$/i;

function bearerOf({ headers }: FastifyRequest): string | undefined {
  return BEARER.exec(headers.authorization ?? '')?.[1];
}

/** Checks the credential of every request before its body is read. */
export function requireCredentials(
  server: FastifyInstance,
  authenticate: Authenticate,
  defaultTenant: string,
  countRequest?: (keyId: string) => void,
): void {
  const receivers = new ReceiverRates();
  server.decorateRequest('caller', null);
  server.addHook('onRequest', async (request) => {
    const scope = request.routeOptions.config.scope ?? 'operator';
    if (scope === 'public') return;
    const bearer = bearerOf(request);
    if (bearer === undefined) {
      throw new PunctualError('UNAUTHENTICATED', 'Send a key in the header authorization: Bearer KEY.');
    }
    const credential = await authenticate(bearer);
    if (credential === null) throw new PunctualError('UNAUTHENTICATED', 'The key is not known.');
    const { id } = request.params as { id?: string };
    const refusal = refusalOf(credential, scope, { id, tenant: request.headers[TENANT_HEADER] });
    if (refusal !== null) throw new PunctualError('FORBIDDEN', refusal);
    // A request that another node has forwarded was counted there: it comes with that node's token.
    if (
      countRequest &&
      'key' in credential &&
      credential.key &&
      !bearer.startsWith('ey') &&
      !isOfWorker(request)
    )
      countRequest(credential.key.id);
    if ('jobId' in credential && credential.isReceiver) receivers.count(credential, isEnd(request));
    request.caller = 'jobId' in credential ? credential : actFor(request, credential, defaultTenant);
  });
}

/** Whether it says how an attempt ended. */
function isEnd({ routeOptions }: FastifyRequest): boolean {
  return /\/(complete|fail)$/.test(routeOptions.url ?? '');
}

/** Whether a request has a valid key of an operator. A key that cannot be looked up at the moment does not count. */
export async function bringsOperatorKey(
  request: FastifyRequest,
  authenticate: Authenticate,
): Promise<boolean> {
  const bearer = bearerOf(request);
  if (bearer === undefined) return false;
  const credential = await authenticate(bearer).catch(() => null);
  return credential !== null && 'operator' in credential && credential.operator;
}

function actFor({ headers }: FastifyRequest, identity: KeyIdentity, defaultTenant: string): Caller {
  const { name: actor, operator, key } = identity;
  const named = headers[TENANT_HEADER];
  const tenant = identity.tenant ?? named ?? defaultTenant;
  if (typeof tenant !== 'string' || !NAME_PATTERN.test(tenant)) {
    throw invalid([{ pointer: `/${TENANT_HEADER}`, detail: NAME_RULE }]);
  }
  const allTenants = operator && named === undefined;
  return { tenant, actor, operator, ...(key && { key }), ...(allTenants && { allTenants }) };
}
