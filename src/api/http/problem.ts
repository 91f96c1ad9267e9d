import { STATUS_CODES } from 'node:http';
import type { Duplex } from 'node:stream';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type ErrorCode, PunctualError } from '../../core/errors.js';
import { explainDatabaseError } from '../../store/database.js';
import type { HttpLog } from './options.js';

/** Errors as `application/problem+json` (RFC 9457). */

/** Errors that libraries throw before a route is reached, by their codes. */
const LIBRARY_ERRORS: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: ['BODY_TOO_LARGE', 'The body is larger than this route takes.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    'UNSUPPORTED_MEDIA_TYPE',
    'Send JSON, with the header content-type: application/json.',
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: [
    'MALFORMED_REQUEST',
    'The body is not as long as its content-length says.',
  ],
  FST_ERR_BAD_URL: ['MALFORMED_REQUEST', 'The path is not a valid URL.'],
  FST_ERR_MAX_PARAM_LENGTH: ['NOT_FOUND', 'A part of the path is longer than any name.'],
};

/** Errors of Node for connections on which no request could be parsed, by their codes. */
const CONNECTION_ERRORS: Readonly<Record<string, readonly [ErrorCode, string]>> = {
  HPE_HEADER_OVERFLOW: ['HEADERS_TOO_LARGE', 'The headers are larger than the server takes.'],
  HPE_CHUNK_EXTENSIONS_OVERFLOW: ['BODY_TOO_LARGE', 'The chunks of the body say too much about themselves.'],
  NO_HOST: ['MALFORMED_REQUEST', 'The request does not say which host it is meant for.'],
  NO_TUNNEL: ['MALFORMED_REQUEST', 'The server is no proxy.'],
  ERR_HTTP_REQUEST_TIMEOUT: ['REQUEST_TIMED_OUT', 'The request was not complete in time.'],
};

/** Errors of a node that does not lead, or is stopping, and has done nothing: the client may ask another node. */
const NOT_LEADING = new Set<ErrorCode>(['NO_LEADER', 'SHUTTING_DOWN']);

/** A body up to this size is read to its end after an early error, so that the client receives the answer. */
const MOST_READ_AFTER_ERROR = 64 * 1024 * 1024;

/** The body of an error answer. */
function problemOf(error: PunctualError, requestId: string) {
  return {
    type: `urn:punctual:error:${error.code}`,
    title: error.title,
    status: error.status,
    detail: error.message,
    code: error.code,
    ...(error.errors.length > 0 && { errors: error.errors }),
    ...(error.quota && { quota: error.quota.name, limit: error.quota.limit }),
    requestId,
  };
}

/** Answers with an error; an internal one is logged, and its details stay in the log. */
export function sendProblem(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  log: HttpLog,
  onRefused?: (error: PunctualError) => void,
): void {
  const error = publicError(thrown);
  onRefused?.(error);
  if (error.status === 500) {
    const { method, id: requestId } = request;
    log.error({ err: thrown, requestId, method, route: request.routeOptions.url }, 'a request failed');
  }
  if (error.code === 'UNAUTHENTICATED') reply.header('www-authenticate', 'Bearer realm="punctual"');
  if (NOT_LEADING.has(error.code)) reply.header('punctual-no-leader', '1');
  if (error.retryAfter !== undefined) reply.header('retry-after', Math.max(0, Math.ceil(error.retryAfter)));
  decideOnConnection(request, reply);
  reply
    .code(error.status)
    .type('application/problem+json')
    .serializer((body: unknown) => JSON.stringify(body))
    .send(problemOf(error, request.id));
}

/** Answers on a connection whose request could not be parsed, and closes it. */
export function refuseConnection(error: { code?: string }, socket: Duplex, requestId: string): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [code, detail] = CONNECTION_ERRORS[error.code ?? ''] ?? [
    'MALFORMED_REQUEST',
    'The request is not HTTP.',
  ];
  const body = JSON.stringify(problemOf(new PunctualError(code, detail), requestId));
  const status = new PunctualError(code, detail).status;
  socket.end(
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\nrequest-id: ${requestId}\r\n` +
      `content-type: application/problem+json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
}

function publicError(thrown: unknown): PunctualError {
  const explained = explainDatabaseError(thrown);
  if (explained instanceof PunctualError) return explained.status === 500 ? internal(thrown) : explained;
  const { code, statusCode } = (thrown ?? {}) as { code?: unknown; statusCode?: unknown };
  const known = typeof code === 'string' ? LIBRARY_ERRORS[code] : undefined;
  if (known) return new PunctualError(known[0], known[1]);
  // The connection broke in the middle of the body, or a library refused the request with a code not listed above.
  if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500) {
    return new PunctualError('MALFORMED_REQUEST', 'The request could not be read.', { cause: thrown });
  }
  return internal(thrown);
}

function internal(cause: unknown): PunctualError {
  return new PunctualError('INTERNAL', 'The log of the node says more, under the id of this request.', {
    cause,
  });
}

/**
 * When an error is known before the body has arrived, closing the connection would reset it while the client is still
 * sending, and the client would never see the error. So a body of bounded length is read and discarded, within the time
 * limit of every request; only longer ones are cut off.
 */
function decideOnConnection(request: FastifyRequest, reply: FastifyReply): void {
  if (request.raw.complete) return;
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = request.headers;
  const isBounded = encoding === undefined && Number(length) <= MOST_READ_AFTER_ERROR;
  if (!isBounded) reply.header('connection', 'close');
  else if (reply.hasHeader('connection')) reply.removeHeader('connection');
}
