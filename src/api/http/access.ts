import type { FastifyInstance, FastifyRequest } from 'fastify';
import { invalid, PunctualError } from '../../core/errors.js';
import { NAME_PATTERN, NAME_RULE } from '../../core/job.js';
import { type AttemptCredential, type Caller, type KeyIdentity, refusalOf, type Scope } from '../caller.js';
import { ReceiverRates } from '../receiver-rates.js';
import type { SessionCookie } from '../session-cookie.js';
import { refuseOtherPages } from './same-origin.js';

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

/** How sessions of browsers are read and checked. */
export interface Sessions {
  readonly cookie: SessionCookie;
  /** Answers null when the session or its key is not valid. */
  readonly authenticate: (session: string) => Promise<KeyIdentity | null>;
}

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

/** The credential of a request: a key or token in its header, else the session of a browser. Undefined if it brings none. */
async function credentialOf(
  request: FastifyRequest,
  authenticate: Authenticate,
  sessions: Sessions | undefined,
): Promise<KeyIdentity | AttemptCredential | null | undefined> {
  const bearer = bearerOf(request);
  if (bearer !== undefined) return authenticate(bearer);
  if (!sessions || request.headers.authorization !== undefined) return undefined;
  const session = sessions.cookie.read(request.headers.cookie);
  if (session === null) return undefined;
  refuseOtherPages(request);
  return sessions.authenticate(session);
}

/** Checks the credential of every request before its body is read. */
export function requireCredentials(
  server: FastifyInstance,
  authenticate: Authenticate,
  defaultTenant: string,
  countRequest?: (keyId: string) => void,
  sessions?: Sessions,
): void {
  const receivers = new ReceiverRates();
  server.decorateRequest('caller', null);
  server.addHook('onRequest', async (request) => {
    const scope = request.routeOptions.config.scope ?? 'operator';
    if (request.routeOptions.config.route?.fromOwnPages) refuseOtherPages(request);
    if (scope === 'public') return;
    const credential = await credentialOf(request, authenticate, sessions);
    if (credential === undefined) {
      throw new PunctualError('UNAUTHENTICATED', 'Send a key in the header authorization: Bearer KEY.');
    }
    if (credential === null) throw new PunctualError('UNAUTHENTICATED', 'The key is not known.');
    const { id } = request.params as { id?: string };
    const refusal = refusalOf(credential, scope, { id, tenant: request.headers[TENANT_HEADER] });
    if (refusal !== null) throw new PunctualError('FORBIDDEN', refusal);
    // A request that another node has forwarded was counted there: it comes with that node's token.
    if (countRequest && 'key' in credential && credential.key && !isToken(request) && !isOfWorker(request))
      countRequest(credential.key.id);
    if ('jobId' in credential && credential.isReceiver) receivers.count(credential, isEnd(request));
    request.caller = 'jobId' in credential ? credential : actFor(request, credential, defaultTenant);
  });
}

/** Whether it says how an attempt ended. */
function isEnd({ routeOptions }: FastifyRequest): boolean {
  return /\/(complete|fail)$/.test(routeOptions.url ?? '');
}

/** Whether a request comes with something that a node signed. */
function isToken(request: FastifyRequest): boolean {
  return bearerOf(request)?.startsWith('ey') ?? false;
}

/** Whether a request has a valid key of an operator. A key that cannot be looked up at the moment does not count. */
export async function bringsOperatorKey(
  request: FastifyRequest,
  authenticate: Authenticate,
  sessions?: Sessions,
): Promise<boolean> {
  const credential = await credentialOf(request, authenticate, sessions).catch(() => null);
  return !!credential && 'operator' in credential && credential.operator;
}

function actFor({ headers }: FastifyRequest, identity: KeyIdentity, defaultTenant: string): Caller {
  const { name: actor, operator, key, sessionEndsAt } = identity;
  const named = headers[TENANT_HEADER];
  const tenant = identity.tenant ?? named ?? defaultTenant;
  if (typeof tenant !== 'string' || !NAME_PATTERN.test(tenant)) {
    throw invalid([{ pointer: `/${TENANT_HEADER}`, detail: NAME_RULE }]);
  }
  const allTenants = operator && named === undefined;
  return {
    ...{ tenant, actor, operator },
    ...(key && { key }),
    ...(allTenants && { allTenants }),
    ...(sessionEndsAt !== undefined && { sessionEndsAt }),
  };
}
