import type { FastifyInstance, FastifyRequest, onRequestHookHandler } from 'fastify';
import { PunctualError } from '../../core/errors.js';
import { readJsonText, readLargeJsonText } from '../../core/json-reader.js';
import type { JsonShape } from '../../core/json-scanner.js';
import { type HttpLimits, type StreamBody, tooLarge } from '../route.js';

/** A body up to this size is parsed in one piece, which takes about a millisecond. */
const SMALL_BYTES = 256 * 1024;

/** Makes the server parse JSON bodies only; a route that declares a stream gets it unread. */
export function acceptBodies(server: FastifyInstance, limits: HttpLimits): void {
  server.decorateRequest('rawBody', null);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      const encoding = request.headers['content-encoding'];
      if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
        throw unsupported('Send the body without content-encoding.');
      }
      request.rawBody = body as Buffer;
      const { length } = body;
      const shape = shapeOf(request, limits);
      if (length === 0) done(null, undefined);
      else if (length <= SMALL_BYTES) done(null, readJsonText(body as Buffer, shape));
      else readInTurn(request, body as Buffer, shape).then((value) => done(null, value), done);
    } catch (error) {
      done(error as Error);
    }
  });
  server.addContentTypeParser('*', (request, pieces, done) => {
    if (request.routeOptions.config.route?.body?.kind === 'stream') done(null, pieces);
    else done(unsupported('Send JSON, with the header content-type: application/json.'));
  });
}

/** Refuses a stream of the wrong type or size before it is read. */
export function refuseOtherStreams({ type, takesAny, maxBytes }: StreamBody<unknown>): onRequestHookHandler {
  return (request, _reply, done) => {
    // What is a file to this route must not be read as JSON because that is what it holds.
    if (takesAny) request.headers['content-type'] = type;
    else if (request.mediaType !== type) return done(unsupported(`Send the body as ${type}.`));
    if (Number(request.headers['content-length']) > maxBytes) done(tooLarge(maxBytes));
    else done();
  };
}

function unsupported(detail: string): PunctualError {
  return new PunctualError('UNSUPPORTED_MEDIA_TYPE', detail);
}

async function readInTurn(request: FastifyRequest, body: Buffer, shape: JsonShape): Promise<unknown> {
  await request.largeBody?.arrive();
  return readLargeJsonText(body, shape);
}

function shapeOf({ routeOptions }: FastifyRequest, limits: HttpLimits): JsonShape {
  const { maxDepth } = limits;
  const body = routeOptions.config.route?.body;
  if (body?.kind !== 'json') return { maxDepth };
  const { text, orText, topText, lists, maps, mostItems } = body;
  return { maxDepth, text, orText, topText, lists, maps, mostItems: mostItems?.(limits) };
}
