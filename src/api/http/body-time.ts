import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { refuseConnection } from './problem.js';

/**
 * Gives up requests whose bodies do not arrive in time. Node's own limit holds for all requests alike, and an upload takes as long
 * as it takes: whoever reads a stream looks after those who stall. An upload that was refused has the usual time to be read to its
 * end, so that its client sees the answer.
 */
export function limitBodyTime(server: FastifyInstance, limitMs: number): void {
  server.addHook('onRequest', (request, reply, done) => {
    if (hasBody(request) && !isStream(request)) giveUpAfter(request, reply, limitMs);
    done();
  });
  server.addHook('onSend', (request, reply, _payload, done) => {
    if (isStream(request) && !request.raw.complete) giveUpAfter(request, reply, limitMs);
    done();
  });
}

function giveUpAfter({ raw, id }: FastifyRequest, reply: FastifyReply, limitMs: number): void {
  const { socket } = raw;
  const timer = setTimeout(() => {
    // Requests that come through no socket are not said to be complete, and need not be.
    if (raw.complete !== false) return;
    if (reply.raw.headersSent) socket.destroy();
    else refuseConnection({ code: 'ERR_HTTP_REQUEST_TIMEOUT' }, socket, id);
  }, limitMs).unref();
  raw.once('close', () => clearTimeout(timer));
}

function hasBody({ headers }: FastifyRequest): boolean {
  const { 'content-length': length, 'transfer-encoding': encoding } = headers;
  return encoding !== undefined || (length !== undefined && length !== '0');
}

function isStream({ routeOptions }: FastifyRequest): boolean {
  return routeOptions.config.route?.body?.kind === 'stream';
}
