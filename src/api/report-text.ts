import type { JobError } from '../core/job.js';
import { JsonText } from '../core/json-reader.js';
import { readJson } from '../core/submission.js';

/** Reports of workers, cut to the limits of what is stored. */

const NO_RESULT = { json: 'null' } as const;

/** The result as JSON text, or an error when it is too large or too deep. */
export function resultText(
  result: unknown,
  limits: { readonly maxPayload: number; readonly maxDepth: number },
): { readonly json: string } | { readonly error: JobError } {
  // Most results are stored as they came, so nothing is made ahead for the others.
  if (result === undefined || result === null) return NO_RESULT;
  if (result instanceof JsonText && result.bytes <= limits.maxPayload) return { json: result.text };
  let error: JobError = { message: 'the result cannot be stored' };
  const json = readJson(result, limits, (detail, code) => {
    error =
      code === 'PAYLOAD_TOO_LARGE'
        ? { code: 'RESULT_TOO_LARGE', message: `The result ${detail}.` }
        : { code: 'RESULT_NOT_JSON', message: `The result ${detail}.` };
  });
  return json === null ? { error } : { json };
}

/** An error cut to the size limit: the message first, then as much of the stack as fits. */
export function cutError(error: JobError, maxBytes: number): JobError {
  const message = cut(error.message, maxBytes >> 1);
  const code = error.code === undefined ? undefined : cut(error.code, Math.min(256, maxBytes >> 2));
  const left = maxBytes - Buffer.byteLength(message) - Buffer.byteLength(code ?? '');
  const stack = error.stack === undefined ? undefined : cut(error.stack, left);
  return { message, ...(code !== undefined && { code }), ...(stack !== undefined && { stack }) };
}

/** The most bytes of the message in an attempt's progress. */
const MAX_MESSAGE_BYTES = 1_024;

/** Progress with its message cut, because it is kept in memory and written every second. */
export function cutProgress<P extends { readonly message?: string }>(progress: P): P {
  if (progress.message === undefined) return progress;
  return { ...progress, message: cut(progress.message, MAX_MESSAGE_BYTES) };
}

function cut(text: string, maxBytes: number): string {
  if (text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.from(text).subarray(0, Math.max(0, maxBytes - 3));
  return `${new TextDecoder().decode(bytes).replace(/\uFFFD+$/, '')}…`;
}
