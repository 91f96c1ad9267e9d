import { assertNever } from './errors.js';
import type { AttemptOutcome, EndState, JobError } from './job.js';
import { type Backoff, backoffMs } from './retry.js';
import type { OriginReport } from './wire.js';

/** What becomes of a job when its attempt has ended: decided here, purely; written elsewhere. */

/** What the decision depends on; counts are those before the attempt ended. */
export interface RunningJob {
  readonly failures: number;
  readonly losses: number;
  readonly maxAttempts: number;
  readonly maxLosses: number;
  readonly atMostOnce: boolean;
  readonly backoff: Backoff;
  /** When somebody asked for the job to be cancelled while it ran; null when nobody did. */
  readonly cancelledAt: number | null;
}

/** How an attempt ended, or that its worker has handed it on. */
export type AttemptEnd = Outcome & {
  /** How it ran a program, as JSON. */
  readonly execution?: string;
};

type Outcome =
  | { readonly outcome: 'succeeded'; readonly result: string }
  | {
      readonly outcome: 'failed';
      readonly error: JobError;
      readonly retryable: boolean;
      /** Milliseconds before which the next attempt must not start. */
      readonly retryAfterMs?: number;
      readonly origin?: OriginReport;
    }
  | { readonly outcome: 'timed-out'; readonly error: JobError }
  | { readonly outcome: 'lost'; readonly error: JobError }
  | { readonly outcome: 'cancelled'; readonly error: JobError | null }
  | { readonly outcome: 'handed-on' };

/** What becomes of the job. */
export type Decision =
  | {
      readonly kind: 'end';
      readonly state: EndState;
      readonly outcome: AttemptOutcome;
      readonly result: string | null;
      readonly error: JobError | null;
    }
  | {
      readonly kind: 'again';
      readonly outcome: AttemptOutcome;
      readonly delayMs: number;
      readonly error: JobError;
    }
  /** The attempt goes on without a worker. */
  | { readonly kind: 'hand-on' };

/**
 * Failures draw on one budget and losses on another; an at-most-once job has neither. A cancel that was asked
 * for is kept whatever becomes of the attempt, unless it succeeded first. An attempt that was stopped although
 * nobody cancelled the job (a worker misunderstood, or obeyed a leader that was wrong) counts as lost.
 */
export function decide(job: RunningJob, end: AttemptEnd, random: number): Decision {
  if (job.cancelledAt !== null && end.outcome !== 'succeeded') {
    const { outcome, error } = end.outcome === 'handed-on' ? STOPPED : end;
    return { kind: 'end', state: 'cancelled', outcome, result: null, error };
  }
  switch (end.outcome) {
    case 'succeeded':
      return { kind: 'end', state: 'succeeded', outcome: 'succeeded', result: end.result, error: null };
    case 'failed':
    case 'timed-out': {
      const failures = job.failures + 1;
      const again =
        !job.atMostOnce && failures < job.maxAttempts && (end.outcome === 'timed-out' || end.retryable);
      if (!again) return failed(end.outcome, end.error);
      return {
        kind: 'again',
        outcome: end.outcome,
        delayMs: Math.max(backoffMs(job.backoff, failures, random), notBeforeMs(end)),
        error: end.error,
      };
    }
    case 'lost':
    case 'cancelled': {
      const error = end.error ?? { message: 'The attempt was stopped.' };
      const again = !job.atMostOnce && job.losses + 1 < job.maxLosses;
      if (!again) return failed('lost', error);
      return { kind: 'again', outcome: 'lost', delayMs: 0, error };
    }
    case 'handed-on':
      return { kind: 'hand-on' };
    default:
      return assertNever(end);
  }
}

/** A worker that was to stop an attempt handed it on instead: it ends all the same. */
const STOPPED = { outcome: 'cancelled', error: null } as const;

function notBeforeMs(end: Extract<AttemptEnd, { outcome: 'failed' | 'timed-out' }>): number {
  return end.outcome === 'failed' ? (end.retryAfterMs ?? 0) : 0;
}

function failed(outcome: AttemptOutcome, error: JobError): Decision {
  return { kind: 'end', state: 'failed', outcome, result: null, error };
}
