import { messageOf, PunctualError } from '../core/errors.js';
import type { JobError } from '../core/job.js';

/** Throw this from a handler when trying again cannot help: the job fails at once, whatever retries are left. */
export class PermanentError extends Error {
  readonly code: string | undefined;
  readonly retryable = false;

  constructor(message: string, options: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PermanentError';
    this.code = options.code;
  }
}

/** How an attempt went wrong, in the form in which it is reported. */
export interface Failure {
  readonly error: JobError;
  readonly retryable: boolean;
}

/** Describes whatever a handler threw. Nothing about the value is trusted: its getters may throw as well. */
export function failureOf(thrown: unknown, maxBytes: number): Failure {
  try {
    const { code, stack, retryable } = propertiesOf(thrown);
    const prefix = thrown instanceof Error ? '' : `${kindOf(thrown)} was thrown: `;
    const message = cut(prefix + messageOf(thrown), Math.floor(maxBytes / 2));
    return {
      error: {
        message,
        ...(typeof code === 'string' && { code: cut(code, 128) }),
        ...(typeof stack === 'string' && { stack: cut(stack, Math.floor(maxBytes / 3)) }),
      },
      retryable: retryable !== false,
    };
  } catch {
    return { error: { message: 'The handler threw a value that cannot be read.' }, retryable: true };
  }
}

function propertiesOf(thrown: unknown): { code?: unknown; stack?: unknown; retryable?: unknown } {
  return typeof thrown === 'object' && thrown !== null ? thrown : {};
}

function kindOf(thrown: unknown): string {
  if (thrown === null || thrown === undefined) return String(thrown);
  return typeof thrown === 'object' ? 'an object that is not an Error' : `a ${typeof thrown}`;
}

/** Any error as one of ours, so that its status can be asked for. */
export function asPunctualError(thrown: unknown): PunctualError {
  if (thrown instanceof PunctualError) return thrown;
  return new PunctualError('INTERNAL', messageOf(thrown), { cause: thrown });
}

/** The beginning of a text within a number of bytes of UTF-8. */
function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.from(text.slice(0, maxBytes)).subarray(0, Math.max(0, maxBytes - 3));
  // A character that was cut in two decodes to U+FFFD, which is dropped.
  return `${bytes.toString('utf8').replace(/\uFFFD+$/, '')}…`;
}
