import { assertNever, messageOf } from '../core/errors.js';
import { type Execution, MAX_EXECUTION_BYTES } from '../core/execution.js';
import type { JobError } from '../core/job.js';
import { PermanentError } from '../core/task.js';
import type { AttemptFacts, AttemptResult, FencedJob, OriginReport } from '../core/wire.js';
import { chainOf } from './error-chain.js';
import { CallError } from './runners/http/call-error.js';
import { type Attempt, stopReason } from './running-attempt.js';

/** What a runner returns that leaves the end of the attempt to whoever has its token. */
export const HANDED_ON = Symbol('handed on');

/** How the work of an attempt ended; `abandoned` means that the handler did not settle after it was told to stop. */
export type Ending =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly thrown: unknown }
  | { readonly kind: 'abandoned' };

/** The largest result and the largest error that are reported. */
interface ResultLimits {
  readonly maxResultBytes: number;
  readonly maxErrorBytes: number;
  /** Whether code of users may still hold what was returned, and change it. */
  readonly isShared: boolean;
}

/** An execution is bounded, and so it is counted as a bound. */
function baseBytes({ execution }: AttemptIdentity): number {
  return OVERHEAD_BYTES + (execution === undefined ? 0 : MAX_EXECUTION_BYTES);
}

/** A result to be reported, with its approximate size as JSON. */
export interface SizedResult {
  readonly result: AttemptResult;
  readonly bytes: number;
}

/** What a result says about the attempt it belongs to. */
export interface AttemptIdentity extends FencedJob {
  /** Set by workers that serve all tenants. */
  readonly tenant?: string | undefined;
  readonly startedAt?: string | undefined;
  /** How it ran a program. */
  readonly execution?: Execution | undefined;
}

const OVERHEAD_BYTES = 160;

/** The result of an attempt: it follows from how the attempt ended and from why it was told to stop, if it was. */
export function resultOf(attempt: Attempt, ending: Ending, limits: ResultLimits): SizedResult {
  switch (attempt.stopCause) {
    case 'timeout':
      return stopped(attempt, 'timed-out', ending);
    case 'leader':
    case 'stale':
    case 'shutdown':
      // A handler that finished in spite of the order to stop has succeeded: the first accepted outcome wins.
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

/** The result of a failed attempt, or of one whose real result the scheduler refuses. */
export function failed(attempt: AttemptIdentity, failure: Failure): SizedResult {
  const { error, retryable, retryAfterMs, origin } = failure;
  return {
    result: {
      ...identity(attempt),
      outcome: 'failed',
      error,
      ...(!retryable && { retryable }),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(origin && { origin }),
    },
    bytes: baseBytes(attempt) + 2 * (error.message.length + (error.stack?.length ?? 0)),
  };
}

function returned(attempt: Attempt, value: unknown, limits: ResultLimits): SizedResult {
  if (value === HANDED_ON) {
    return { result: { ...identity(attempt), outcome: 'handed-on' }, bytes: OVERHEAD_BYTES };
  }
  try {
    const encoded = encodeResult(value, limits);
    return {
      result: succeeded(attempt, encoded.value),
      bytes: baseBytes(attempt) + encoded.bytes,
    };
  } catch (thrown) {
    return failed(attempt, failureOf(thrown, limits.maxErrorBytes));
  }
}

/**
 * Object literals without spread, because one is made for every job and a spread costs several times as much. A result
 * that is null is left out, which means the same and is read faster: most handlers return nothing.
 */
function succeeded(attempt: AttemptIdentity, result: unknown): AttemptResult {
  const { jobId, fence, tenant, startedAt, execution } = attempt;
  if (tenant !== undefined || startedAt === undefined || execution !== undefined)
    return { ...identity(attempt), outcome: 'succeeded', result };
  if (result === null) return { jobId, fence, startedAt, outcome: 'succeeded' };
  return { jobId, fence, startedAt, outcome: 'succeeded', result };
}

function stopped(attempt: Attempt, outcome: 'timed-out' | 'cancelled', ending: Ending): SizedResult {
  const reason = stopReason(attempt.stopCause ?? 'leader', attempt.assignment);
  const message =
    ending.kind === 'abandoned' ? `${reason.message} Its handler did not end when told to.` : reason.message;
  return {
    result: { ...identity(attempt), outcome, error: { message, code: reason.code } },
    bytes: baseBytes(attempt) + message.length,
  };
}

function identity(attempt: AttemptIdentity): FencedJob & AttemptFacts {
  const { jobId, fence, tenant, startedAt, execution } = attempt;
  const own = startedAt === undefined ? { jobId, fence } : { jobId, fence, startedAt };
  if (tenant === undefined && execution === undefined) return own;
  return { ...own, ...(tenant !== undefined && { tenant }), ...(execution && { execution }) };
}

/** A handler's result as plain JSON data, with its size as JSON. */
interface EncodedResult {
  readonly value: unknown;
  readonly bytes: number;
}

/**
 * Turns a handler's return value into plain JSON data; throws when that is not possible. A value that code of the handler may
 * still hold is copied, so that it cannot change what is reported.
 */
function encodeResult(
  returned: unknown,
  { maxResultBytes: maxBytes, isShared }: ResultLimits,
): EncodedResult {
  if (returned === undefined || returned === null) return { value: null, bytes: 4 };
  if (typeof returned === 'boolean') return { value: returned, bytes: 5 };
  const text = stringify(returned);
  // A UTF-16 code unit takes at most three bytes of UTF-8, so most results need no exact count.
  const bytes = text.length * 3 <= maxBytes ? text.length : Buffer.byteLength(text);
  if (bytes > maxBytes) {
    throw new PermanentError(
      `The result takes ${bytes} bytes as JSON; at most ${maxBytes} are kept. Store it elsewhere and return a reference.`,
      { code: 'RESULT_TOO_LARGE' },
    );
  }
  return { value: isShared && typeof returned !== 'string' ? JSON.parse(text) : returned, bytes };
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
  return new PermanentError(`The handler returned a value that JSON cannot represent: ${why}`, {
    code: 'RESULT_NOT_JSON',
    cause,
  });
}

/** Why an attempt failed, as it is reported. */
export interface Failure {
  readonly error: JobError;
  readonly retryable: boolean;
  readonly retryAfterMs?: number | undefined;
  readonly origin?: OriginReport | undefined;
}

/** The failure that a thrown value stands for. The value is not trusted: its getters may throw, too. */
export function failureOf(thrown: unknown, maxBytes: number): Failure {
  try {
    const { code, stacks } = chainOf(thrown);
    const { retryable } = propertiesOf(thrown);
    const prefix = thrown instanceof Error ? '' : `${kindOf(thrown)} was thrown: `;
    const message = cut(prefix + messageOf(thrown), Math.floor(maxBytes / 2));
    return {
      error: {
        message,
        ...(code !== undefined && { code: cut(code, 128) }),
        ...(stacks.length > 0 && { stack: cutStacks(stacks, Math.floor(maxBytes / 3)) }),
      },
      retryable: retryable !== false,
      ...(thrown instanceof CallError && { retryAfterMs: thrown.retryAfterMs, origin: thrown.origin }),
    };
  } catch {
    return { error: { message: 'The handler threw a value that cannot be read.' }, retryable: true };
  }
}

function propertiesOf(thrown: unknown): { retryable?: unknown } {
  return typeof thrown === 'object' && thrown !== null ? thrown : {};
}

function kindOf(thrown: unknown): string {
  if (thrown === null || thrown === undefined) return String(thrown);
  return typeof thrown === 'object' ? 'an object that is not an Error' : `a ${typeof thrown}`;
}

/** Stacks as one text. If they are too long together, each gets an equal share, so that the last cause is not lost. */
function cutStacks(stacks: readonly string[], maxBytes: number): string {
  const all = stacks.join('\n');
  if (stacks.length === 1 || Buffer.byteLength(all) <= maxBytes) return cut(all, maxBytes);
  const share = Math.floor(maxBytes / stacks.length) - 1;
  return stacks.map((stack) => cut(stack, share)).join('\n');
}

/** The longest beginning of a text that fits into a number of bytes of UTF-8. */
function cut(text: string, maxBytes: number): string {
  if (text.length * 3 <= maxBytes || Buffer.byteLength(text) <= maxBytes) return text;
  const bytes = Buffer.from(text.slice(0, maxBytes)).subarray(0, Math.max(0, maxBytes - 3));
  // A character that was cut decodes to U+FFFD, which is dropped.
  return `${bytes.toString('utf8').replace(/\uFFFD+$/, '')}…`;
}
