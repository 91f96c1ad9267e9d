import type { FastifyInstance, FastifyRequest } from 'fastify';
import { PunctualError } from '../../core/errors.js';
import { readJsonText, readLargeJsonText } from '../../core/json-reader.js';
import type { JsonShape } from '../../core/json-scanner.js';

/** A body up to this size is read at once: it takes about a millisecond to walk over it. */
const SMALL_BYTES = 256 * 1024;

/** Makes JSON the only kind of body that the server reads; a route that declares a stream gets it unread. */
export function acceptBodies(server: FastifyInstance, maxDepth: number): void {
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
      const shape = shapeOf(request, maxDepth);
      if (length === 0) done(null, undefined);
      else if (length <= SMALL_BYTES) done(null, readJsonText(body as Buffer, shape));
      else readInTurn(request, body as Buffer, shape).then((value) => done(null, value), done);
    } catch (error) {
      done(error as Error);
    }
  });
  server.addContentTypeParser('*', (request, pieces, done) => {
    const body = request.routeOptions.config.route?.body;
    if (body?.kind !== 'stream')
      done(unsupported('Send JSON, with the header content-type: application/json.'));
    else if (request.mediaType !== body.type) done(unsupported(`Send the body as ${body.type}.`));
    else done(null, pieces);
  });
}

function unsupported(detail: string): PunctualError {
  return new PunctualError('UNSUPPORTED_MEDIA_TYPE', detail);
}

async function readInTurn(request: FastifyRequest, body: Buffer, shape: JsonShape): Promise<unknown> {
  await request.largeBody?.arrive();
  return readLargeJsonText(body, shape);
}

function shapeOf({ routeOptions }: FastifyRequest, maxDepth: number): JsonShape {
  const body = routeOptions.config.route?.body;
  return body?.kind === 'json' ? { maxDepth, text: body.text, lists: body.lists } : { maxDepth };
}
