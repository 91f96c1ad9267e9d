import { assertNever } from '../core/errors.js';
import type { AttemptResult, FencedJob } from '../core/wire.js';
import { type Attempt, stopReason } from './attempt.js';
import { type Failure, failureOf } from './failure.js';
import { encodeResult } from './result-json.js';

/** How the work of an attempt came to its end; `abandoned` means that it did not settle after it was told to stop. */
export type Ending =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly thrown: unknown }
  | { readonly kind: 'abandoned' };

export interface ResultLimits {
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
