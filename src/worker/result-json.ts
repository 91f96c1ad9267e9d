import { messageOf } from '../core/errors.js';
import { PermanentError } from './failure.js';

/** A handler's result as it travels, and its size as JSON. */
export interface EncodedResult {
  readonly value: unknown;
  readonly bytes: number;
}

/**
 * Turns what a handler returned into plain JSON data, or throws what is wrong with it. The value is copied:
 * whatever the handler's leftovers still do to it, the report carries what was returned.
 */
export function encodeResult(returned: unknown, maxBytes: number): EncodedResult {
  if (returned === undefined || returned === null) return { value: null, bytes: 4 };
  if (typeof returned === 'boolean') return { value: returned, bytes: 5 };
  const text = stringify(returned);
  // Every UTF-16 unit takes at most three bytes, which spares most results the exact count.
  const bytes = text.length * 3 <= maxBytes ? text.length : Buffer.byteLength(text);
  if (bytes > maxBytes) {
    throw new PermanentError(
      `The result takes ${bytes} bytes as JSON; at most ${maxBytes} are kept. Store it elsewhere and return a reference.`,
      { code: 'RESULT_TOO_LARGE' },
    );
  }
  return { value: typeof returned === 'string' ? returned : JSON.parse(text), bytes };
}

function stringify(returned: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(returned);
  } catch (thrown) {
    throw notJson(messageOf(thrown), thrown);
  }
  if (text === undefined) throw notJson(`it is a ${typeof returned}`);
  return text;
}

function notJson(why: string, cause?: unknown): PermanentError {
  return new PermanentError(`The handler returned what JSON cannot hold: ${why}`, {
    code: 'RESULT_NOT_JSON',
    cause,
  });
}
