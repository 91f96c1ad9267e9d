import type { FastifyInstance, FastifyRequest } from 'fastify';
import { PunctualError } from '../../core/errors.js';
import { readJsonText, readLargeJsonText } from '../../core/json-reader.js';
import type { JsonShape } from '../../core/json-scanner.js';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The field of the body, or of each item of its lists, that is kept as the text in which it came. */
    bodyText?: 'payload' | 'result';
    /** Fields of the body that hold lists which may be long. */
    bodyLists?: readonly string[];
  }
}

/** A body up to this size is read at once: it takes about a millisecond to walk over it. */
const SMALL_BYTES = 256 * 1024;

/** Makes JSON the only kind of body that the server reads. */
export function acceptJsonOnly(server: FastifyInstance, maxDepth: number): void {
  server.decorateRequest('rawBody', null);
  server.removeAllContentTypeParsers();
  server.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    try {
      const encoding = request.headers['content-encoding'];
      if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
        throw new PunctualError('UNSUPPORTED_MEDIA_TYPE', 'Send the body without content-encoding.');
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
}

async function readInTurn(request: FastifyRequest, body: Buffer, shape: JsonShape): Promise<unknown> {
  await request.largeBody?.arrive();
  return readLargeJsonText(body, shape);
}

function shapeOf({ routeOptions }: FastifyRequest, maxDepth: number): JsonShape {
  const { bodyText, bodyLists } = routeOptions.config;
  return { maxDepth, text: bodyText, lists: bodyLists };
}
