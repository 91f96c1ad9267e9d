import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';
import type { FastifyInstance } from 'fastify';
import { PunctualError } from '../../core/errors.js';
import { isOfWorker } from './access.js';

/** Connections beyond the limit that are still told why they are refused; more are closed at once. */
const TOLD_BEYOND = 256;

/**
 * Bounds the open connections of a node, so that a crowd cannot use up its file descriptors. Connections that are open keep
 * being served; a new one beyond the limit gets an answer to its first request, and is closed with it.
 */
export function limitConnections(server: FastifyInstance, maxConnections: number): void {
  let open = 0;
  const surplus = new WeakSet<Socket>();
  server.server.maxConnections = maxConnections + TOLD_BEYOND;
  server.server.on('connection', (socket: Socket) => {
    open += 1;
    socket.once('close', () => {
      open -= 1;
    });
  });
  // With TLS, requests come over another socket than the one that was opened.
  const asking = server.server instanceof TlsServer ? 'secureConnection' : 'connection';
  server.server.on(asking, (socket: Socket) => {
    if (open > maxConnections) surplus.add(socket);
  });
  server.addHook('onRequest', (request, reply, done) => {
    const { socket } = request.raw;
    if (!surplus.has(socket)) return done();
    if (open <= maxConnections) {
      surplus.delete(socket);
      return done();
    }
    reply.raw.shouldKeepAlive = false;
    // A crowd must neither make workers look dead nor come between nodes; what they ask for is served.
    if (isOfWorker(request) || request.routeOptions.config.scope === 'node') return done();
    const detail = `This node has ${maxConnections} open connections already, as many as it may have.`;
    done(new PunctualError('TOO_MANY_CONNECTIONS', detail, { retryAfter: 1 }));
  });
}
