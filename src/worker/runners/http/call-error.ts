import type { OriginReport } from '../../../core/wire.js';

/** What is known about a call that failed. */
interface CallErrorOptions {
  readonly retryable: boolean;
  /** How long the receiver wants to be left alone. */
  readonly retryAfterMs?: number | undefined;
  readonly origin?: OriginReport | undefined;
}

/** A call that failed, and what that means for the job and for the origin. */
export class CallError extends Error {
  readonly code: string;
  readonly retryable: boolean;
  readonly retryAfterMs: number | undefined;
  readonly origin: OriginReport | undefined;

  constructor(code: string, message: string, { retryable, retryAfterMs, origin }: CallErrorOptions) {
    super(message);
    this.name = 'CallError';
    this.code = code;
    this.retryable = retryable;
    this.retryAfterMs = retryAfterMs;
    this.origin = origin;
    // The stack would name lines of this program, which say nothing about the call.
    Object.defineProperty(this, 'stack', { value: undefined });
  }
}

/** The origin gave no answer. */
export function noAnswer(code: string, message: string): CallError {
  return new CallError(code, message, { retryable: true, origin: { isDown: true } });
}

/** The call was not made, and would not be made the next time either. */
export function refused(code: string, message: string): CallError {
  return new CallError(code, message, { retryable: false });
}
