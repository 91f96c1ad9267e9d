import { isUtf8 } from 'node:buffer';
import type { FastifyInstance } from 'fastify';
import { invalid, PunctualError } from '../../core/errors.js';
import { pointerStep } from '../../core/fields.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_ARRAY = 0x5b;
const CLOSE_ARRAY = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Matches a field of that name however its letters are escaped; the field itself is then looked for. */
const PROTO_FIELD = new RegExp(
  `"${[...'__proto__'].map((letter) => `(?:${letter}|\\\\u00${letter.charCodeAt(0).toString(16)})`).join('')}"\\s*:`,
  'i',
);

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
      done(null, parseJson(body as Buffer, maxDepth));
    } catch (error) {
      done(error as Error);
    }
  });
}

/** The value of a JSON text, or undefined for an empty one. */
export function parseJson(body: Buffer, maxDepth: number): unknown {
  if (body.length === 0) return undefined;
  if (!isUtf8(body)) throw new PunctualError('MALFORMED_JSON', 'The body is not UTF-8.');
  if (isDeeperThan(body, maxDepth)) {
    throw invalid([{ pointer: '', detail: `must not be nested deeper than ${maxDepth} levels` }]);
  }
  const text = body.toString('utf8');
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new PunctualError('MALFORMED_JSON', (error as Error).message, { cause: error });
  }
  if (PROTO_FIELD.test(text)) refuseProto(value, '');
  return value;
}

/** Looks at the brackets alone, so that a deep body is refused before anything is built from it. */
function isDeeperThan(body: Buffer, maxDepth: number): boolean {
  let depth = 0;
  let inText = false;
  for (let i = 0; i < body.length; i++) {
    const byte = body[i];
    if (inText) {
      if (byte === BACKSLASH) i++;
      else if (byte === QUOTE) inText = false;
    } else if (byte === QUOTE) inText = true;
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) {
      depth += 1;
      if (depth > maxDepth) return true;
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) depth -= 1;
  }
  return false;
}

/**
 * A field named `__proto__` is refused: dropping it would change a payload behind its owner's back, and
 * keeping it would plant a trap for every program that copies the object. The depth is bounded by now.
 */
function refuseProto(value: unknown, pointer: string): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [name, child] of Object.entries(value)) {
    const at = pointer + pointerStep(name);
    if (name === '__proto__') throw invalid([{ pointer: at, detail: 'is a name that is not allowed' }]);
    refuseProto(child, at);
  }
}
