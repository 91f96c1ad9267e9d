import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { type FastifyInstance, fastify } from 'fastify';
import { PunctualError } from '../../core/errors.js';
import { Idempotency } from '../idempotency.js';
import { encodeJson } from '../json-text.js';
import { requireCredentials } from './access.js';
import { apiDocument } from './api-document.js';
import { limitBodyTime } from './body-time.js';
import { limitConnections } from './connections.js';
import { Dashboard, withoutPrefix } from './dashboard.js';
import { Forwarding } from './forwarding.js';
import { LargeBodies } from './large-bodies.js';
import { LongPolls, shuttingDown } from './long-polls.js';
import { AllowedMethods } from './method-not-allowed.js';
import type { HttpServerOptions } from './options.js';
import { refuseConnection, sendProblem } from './problem.js';
import { referenceRoutes } from './reference.js';
import { acceptBodies } from './request-body.js';
import { serveRoute } from './serve-route.js';

declare module 'fastify' {
  interface FastifyInstance {
    /**
     * Refuses requests from now on and aborts those that wait, so that clients ask another node. Closing the
     * connections at once would reset requests in flight, and their clients would not know the outcome.
     */
    endServing(): void;
  }
}

/** The time within which the body of a request must arrive. */
const BODY_TIMEOUT_MS = 60_000;
const HEADERS_TIMEOUT_MS = 15_000;
/** How often these times are checked; Node's default of half a minute would double the shorter one. */
const TIMEOUT_CHECK_MS = 1_000;
/** Longer than any wait that a request may ask for, or the server would close its own long polls. */
const IDLE_SOCKET_TIMEOUT_MS = 120_000;
/** Longer than common clients and proxies keep an idle connection, so that they close it and not the server. */
const KEEP_ALIVE_TIMEOUT_MS = 75_000;
const MAX_HEADER_BYTES = 16 * 1024;
/** Enough for a name whose every character is escaped, and for wrong ids to reach the check that names the error. */
const MAX_PARAM_LENGTH = 1_024;

/**
 * The router also accepts targets that name a host. This server is no proxy and refuses them, so that code which builds
 * an address from a target cannot be sent to another host.
 */
const PATH = /^\/(?![/\\])/;

const SAFE_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
} as const;

/**
 * Ends connections that have brought no request yet when the server closes. Node counts them as busy, and so a client that
 * connects ahead would hold up the end of the process.
 */
function endUnusedConnections(server: FastifyInstance): void {
  const unused = new Set<Socket>();
  server.server.on('connection', (socket: Socket) => {
    unused.add(socket);
    socket.once('close', () => unused.delete(socket));
  });
  server.server.on('request', ({ socket }) => unused.delete(socket));
  server.addHook('preClose', (done) => {
    for (const socket of unused) socket.destroy();
    done();
  });
}

/** Builds the HTTP server of a node over its routes. It does not listen yet. */
export function createHttpServer(options: HttpServerOptions): FastifyInstance {
  const forwarding = new Forwarding(options.forwarding);
  const longPolls = new LongPolls(undefined, options.watch);
  const server = bareServer(options);
  const dashboard = dashboardOf(options);
  server.addHook('onClose', () => forwarding.close());
  const closing = { yes: false };
  const endServing = () => {
    if (closing.yes) return;
    closing.yes = true;
    longPolls.end();
    forwarding.endWaiting();
  };
  server.decorate('endServing', endServing);
  server.addHook('preClose', (done) => {
    endServing();
    done();
  });

  endUnusedConnections(server);
  server.addHook('onRequest', (request, reply, done) => {
    reply.headers(SAFE_HEADERS).header('request-id', request.id);
    if (closing.yes) done(shuttingDown());
    else if (request.headers.host === undefined && request.raw.httpVersion === '1.1') {
      reply.hijack();
      refuseConnection({ code: 'NO_HOST' }, request.raw.socket, request.id);
    } else if (!PATH.test(request.raw.url ?? ''))
      done(
        new PunctualError('MALFORMED_REQUEST', 'The target of a request is a path that begins with one "/".'),
      );
    else if (request.is404) {
      if (dashboard?.serve(request, reply)) return;
      done(new PunctualError('NOT_FOUND', 'The address leads nowhere; /docs lists the routes.'));
    } else done();
  });
  // A connection that was busy when the server began to close must not be kept alive.
  server.addHook('onSend', (_request, reply, _payload, done) => {
    if (closing.yes) reply.header('connection', 'close');
    done();
  });
  limitBodyTime(server, options.bodyTimeoutMs ?? BODY_TIMEOUT_MS);
  limitConnections(server, options.limits.maxConnections);
  requireCredentials(
    server,
    options.authenticate,
    options.defaultTenant,
    options.countRequest,
    options.sessions,
  );
  new LargeBodies(options.limits.maxBulkBytes).watch(server);
  acceptBodies(server, options.limits);

  server.register((scope, _options, done) => {
    // Fastify sends bytes as well, although the type of its serializers knows text only.
    scope.setReplySerializer(encodeJson as (answer: unknown) => string);
    const allowed = new AllowedMethods(scope);
    const idempotency = new Idempotency(options.node);
    const parts = { ...options, longPolls, forwarding, idempotency };
    for (const route of options.routes) serveRoute(scope, route, parts);
    const reference = referenceRoutes(() => apiDocument(options.routes, options.version), dashboard === null);
    for (const route of reference) serveRoute(scope, route, parts);
    allowed.refuseOthers();
    done();
  });
  return server;
}

/** What the documents at `/docs` and `/openapi.json` begin with; the other first segments follow from the routes. */
const REFERENCE = ['docs', 'openapi.json'];

function dashboardOf({ pageFiles, basePath, routes }: HttpServerOptions): Dashboard | null {
  if (!pageFiles?.has('index.html')) return null;
  const reserved = new Set([...REFERENCE, ...routes.map(({ path }) => path.split('/')[1]!)]);
  return new Dashboard(pageFiles, reserved, basePath);
}

function bareServer({ log, certificate, onRefused, basePath = '' }: HttpServerOptions): FastifyInstance {
  const settings = {
    maxHeaderSize: MAX_HEADER_BYTES,
    // Node's own refusal has no body; the check is made with the others.
    requireHostHeader: false,
    headersTimeout: HEADERS_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  };
  // Fastify's type tells servers with and without TLS apart; nothing here depends on the difference.
  const transport = certificate
    ? { https: { ...settings, handshakeTimeout: HEADERS_TIMEOUT_MS, ...certificate } }
    : { http: settings };
  const server = fastify({
    ...(transport as { http: typeof settings }),
    connectionTimeout: IDLE_SOCKET_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
    routerOptions: { maxParamLength: MAX_PARAM_LENGTH },
    genReqId: () => randomUUID(),
    ...(basePath !== '' && {
      rewriteUrl: (request: IncomingMessage) => withoutPrefix(request.url ?? '/', basePath),
    }),
    return503OnClosing: false,
    clientErrorHandler: (error, socket) => refuseConnection(error, socket, randomUUID()),
    frameworkErrors: (error, request, reply) => {
      reply.headers(SAFE_HEADERS).header('request-id', request.id);
      sendProblem(error, request, reply as never, log);
    },
  });
  // An unknown `expect` header is ignored; Node would answer 417 without a body.
  server.server.on('checkExpectation', (request, response) => {
    server.server.emit('request', request, response);
  });
  server.server.on('connect', (_request, socket) =>
    refuseConnection({ code: 'NO_TUNNEL' }, socket, randomUUID()),
  );
  server.setErrorHandler((error, request, reply) => sendProblem(error, request, reply, log, onRefused));
  return server;
}
