import { assertNever, messageOf } from '../core/errors.js';
import type { JobError } from '../core/job.js';
import { PermanentError } from '../core/task.js';
import type { AttemptResult, FencedJob } from '../core/wire.js';
import { type Attempt, stopReason } from './running-attempt.js';

/** How the work of an attempt came to its end; `abandoned` means that it did not settle after it was told to stop. */
export type Ending =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly thrown: unknown }
  | { readonly kind: 'abandoned' };

interface ResultLimits {
  readonly maxResultBytes: number;
  readonly maxErrorBytes: number;
}

/** A result to be reported, and roughly how large it is as JSON. */
export interface SizedResult {
  readonly result: AttemptResult;
  readonly bytes: number;
}

/** What a result says about the attempt it belongs to. */
export interface AttemptIdentity extends FencedJob {
  /** Only from a worker that serves all tenants. */
  readonly tenant?: string | undefined;
  readonly startedAt?: string | undefined;
}

const OVERHEAD_BYTES = 160;

/** Decides what is reported about an attempt, from how it ended and why it was told to stop, if it was. */
export function resultOf(attempt: Attempt, ending: Ending, limits: ResultLimits): SizedResult {
  switch (attempt.stopCause) {
    case 'timeout':
      return stopped(attempt, 'timed-out', ending);
    case 'leader':
    case 'stale':
    case 'shutdown':
      // Work that was done in spite of the order to stop is reported as done: the first accepted outcome wins.
      return ending.kind === 'returned'
        ? returned(attempt, ending.value, limits)
        : stopped(attempt, 'cancelled', ending);
    case null:
      break;
    default:
      return assertNever(attempt.stopCause);
  }
  switch (ending.kind) {
    case 'returned':
      return returned(attempt, ending.value, limits);
    case 'threw':
      return failed(attempt, failureOf(ending.thrown, limits.maxErrorBytes));
    case 'abandoned':
      return stopped(attempt, 'cancelled', ending);
    default:
      return assertNever(ending);
  }
}

/** A failed result, for attempts that ended badly and for results that the scheduler refuses. */
export function failed(attempt: AttemptIdentity, failure: Failure): SizedResult {
  const { error, retryable } = failure;
  return {
    result: { ...identity(attempt), outcome: 'failed', error, ...(!retryable && { retryable }) },
    bytes: OVERHEAD_BYTES + 2 * (error.message.length + (error.stack?.length ?? 0)),
  };
}

function returned(attempt: Attempt, value: unknown, limits: ResultLimits): SizedResult {
  try {
    const encoded = encodeResult(value, limits.maxResultBytes);
    return {
      result: succeeded(attempt, encoded.value),
      bytes: OVERHEAD_BYTES + encoded.bytes,
    };
  } catch (thrown) {
    return failed(attempt, failureOf(thrown, limits.maxErrorBytes));
  }
}

/** Written out, because it is made for every job; a spread costs several times as much. */
function succeeded({ jobId, fence, tenant, startedAt }: AttemptIdentity, result: unknown): AttemptResult {
  if (tenant !== undefined || startedAt === undefined)
    return { ...identity({ jobId, fence, tenant, startedAt }), outcome: 'succeeded', result };
  return { jobId, fence, startedAt, outcome: 'succeeded', result };
}

function stopped(attempt: Attempt, outcome: 'timed-out' | 'cancelled', ending: Ending): SizedResult {
  const reason = stopReason(attempt.stopCause ?? 'leader', attempt.assignment);
  const message =
    ending.kind === 'abandoned' ? `${reason.message} Its handler did not end when told to.` : reason.message;
  return {
    result: { ...identity(attempt), outcome, error: { message, code: reason.code } },
    bytes: OVERHEAD_BYTES + message.length,
  };
}

function identity(attempt: AttemptIdentity): FencedJob & { tenant?: string; startedAt?: string } {
  const { jobId, fence, tenant, startedAt } = attempt;
  const own = startedAt === undefined ? { jobId, fence } : { jobId, fence, startedAt };
  return tenant === undefined ? own : { ...own, tenant };
}

/** A handler's result as it travels, and its size as JSON. */
interface EncodedResult {
  readonly value: unknown;
  readonly bytes: number;
}

/**
 * Turns what a handler returned into plain JSON data, or throws what is wrong with it. The value is copied:
 * whatever the handler's leftovers still do to it, the report carries what was returned.
 */
function encodeResult(returned: unknown, maxBytes: number): EncodedResult {
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

/** The beginning of a text within a number of bytes of UTF-8. */
function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.from(text.slice(0, maxBytes)).subarray(0, Math.max(0, maxBytes - 3));
  // A character that was cut in two decodes to U+FFFD, which is dropped.
  return `${bytes.toString('utf8').replace(/\uFFFD+$/, '')}…`;
}
