/** The errors a program can read: one class, one table from code to HTTP status and CLI exit code. */

/** Every code the product can answer with, and what it means to HTTP and to the shell. */
export const ERROR_CODES = {
  INVALID_REQUEST: { status: 422, exit: 2, title: 'The request is not valid' },
  MALFORMED_JSON: { status: 400, exit: 2, title: 'The body is not valid JSON' },
  MALFORMED_REQUEST: { status: 400, exit: 2, title: 'The request is not valid HTTP' },
  REQUEST_TIMED_OUT: { status: 408, exit: 7, title: 'The request took too long to arrive' },
  HEADERS_TOO_LARGE: { status: 431, exit: 2, title: 'The headers are too large' },
  UNSUPPORTED_MEDIA_TYPE: { status: 415, exit: 2, title: 'The body must be JSON' },
  BODY_TOO_LARGE: { status: 413, exit: 2, title: 'The request is too large' },
  PAYLOAD_TOO_LARGE: { status: 413, exit: 2, title: 'The payload is too large' },
  UNAUTHENTICATED: { status: 401, exit: 4, title: 'A valid key is required' },
  FORBIDDEN: { status: 403, exit: 4, title: 'The key may not do this' },
  NOT_FOUND: { status: 404, exit: 5, title: 'There is no such route' },
  METHOD_NOT_ALLOWED: { status: 405, exit: 2, title: 'The route does not take this method' },
  JOB_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such job' },
  QUEUE_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such queue' },
  TENANT_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such tenant' },
  TENANT_EXISTS: { status: 409, exit: 6, title: 'There is such a tenant already' },
  SCHEDULE_NOT_FOUND: { status: 404, exit: 5, title: 'There is no such schedule' },
  WORKER_NOT_FOUND: { status: 404, exit: 5, title: 'The worker is not registered here' },
  TOO_MANY_WORKERS: { status: 429, exit: 7, title: 'The tenant has too many workers' },
  STALE_FENCE: { status: 409, exit: 6, title: 'A newer attempt owns the job' },
  ATTEMPT_STOPPED: { status: 409, exit: 6, title: 'The attempt was told to stop' },
  JOB_STARTED: { status: 409, exit: 6, title: 'The job has already started' },
  JOB_ENDED: { status: 409, exit: 6, title: 'The job has already ended' },
  JOB_NOT_ENDED: { status: 409, exit: 6, title: 'The job has not ended' },
  JOB_NOT_HELD: { status: 409, exit: 6, title: 'The job is not on hold' },
  JOB_HELD: { status: 409, exit: 6, title: 'The job is on hold already' },
  ALREADY_PAUSED: { status: 409, exit: 6, title: 'It is paused already' },
  NOT_PAUSED: { status: 409, exit: 6, title: 'It is not paused' },
  SCHEDULE_EXISTS: { status: 409, exit: 6, title: 'There is a schedule of that name already' },
  AT_MOST_ONCE: { status: 409, exit: 6, title: 'An at-most-once job is never started again' },
  DUPLICATE_KEY: { status: 409, exit: 6, title: 'The key belongs to another job' },
  QUOTA_EXCEEDED: { status: 429, exit: 6, title: 'A quota is used up' },
  NO_LEADER: { status: 503, exit: 7, title: 'The shard has no leader at the moment' },
  SHUTTING_DOWN: { status: 503, exit: 7, title: 'The node is stopping' },
  TOO_MANY_WAITS: { status: 503, exit: 7, title: 'Too many calls wait at this node' },
  TOO_BUSY: { status: 503, exit: 7, title: 'The node has too much to do at the moment' },
  DATABASE_UNAVAILABLE: { status: 503, exit: 7, title: 'The database cannot be reached' },
  DATABASE_TOO_OLD: { status: 500, exit: 1, title: 'The database server is too old' },
  DATABASE_NOT_WRITABLE: { status: 500, exit: 1, title: 'The database cannot be written to' },
  DATABASE_NEWER: { status: 500, exit: 1, title: 'The database needs a newer program' },
  EMBEDDED_POSTGRES: { status: 500, exit: 1, title: 'The embedded Postgres could not be started' },
  PORT_IN_USE: { status: 500, exit: 1, title: 'The port is taken' },
  UNREACHABLE: { status: 503, exit: 7, title: 'The server cannot be reached' },
  TIMED_OUT: { status: 504, exit: 124, title: 'The wait is over' },
  JOB_UNSUCCESSFUL: { status: 500, exit: 3, title: 'The job ended unsuccessfully' },
  USAGE: { status: 400, exit: 2, title: 'The command is not used that way' },
  CONFIGURATION: { status: 500, exit: 2, title: 'The configuration is not valid' },
  INTERNAL: { status: 500, exit: 1, title: 'Something went wrong on our side' },
} as const;

export type ErrorCode = keyof typeof ERROR_CODES;

/** One thing that is wrong with an input, with a JSON pointer to the field. */
export interface FieldError {
  readonly pointer: string;
  readonly detail: string;
}

export interface PunctualErrorOptions {
  readonly cause?: unknown;
  readonly errors?: readonly FieldError[];
  /** Seconds after which trying again makes sense. */
  readonly retryAfter?: number;
}

/** The base of every error of the product; `code` is stable, `message` is for people. */
export class PunctualError extends Error {
  readonly code: ErrorCode;
  readonly errors: readonly FieldError[];
  readonly retryAfter: number | undefined;

  constructor(code: ErrorCode, detail: string, options: PunctualErrorOptions = {}) {
    super(detail, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PunctualError';
    this.code = code;
    this.errors = options.errors ?? [];
    this.retryAfter = options.retryAfter;
  }

  get status(): number {
    return ERROR_CODES[this.code].status;
  }

  get exitCode(): number {
    return ERROR_CODES[this.code].exit;
  }

  get title(): string {
    return ERROR_CODES[this.code].title;
  }
}

/** So many mistakes are told at once. Whoever looks for them stops at the next one, which shows that there are more. */
export const MOST_ERRORS = 20;
/** Names in a pointer and quotes of what was sent come from outside; what is longer says no more. */
const MOST_POINTER_LENGTH = 512;
const MOST_DETAIL_LENGTH = 1_024;

/** An input with one or more wrong fields. */
export function invalid(errors: readonly FieldError[]): PunctualError {
  const told = errors.slice(0, MOST_ERRORS).map(({ pointer, detail }) => ({
    pointer: shortened(pointer, MOST_POINTER_LENGTH),
    detail: shortened(detail, MOST_DETAIL_LENGTH),
  }));
  const [first] = told;
  const isCut = errors.length > MOST_ERRORS;
  const more = isCut ? ' (and many more)' : told.length > 1 ? ` (and ${told.length - 1} more)` : '';
  const detail = first ? `${first.pointer || 'the body'}: ${first.detail}${more}` : 'not valid';
  if (isCut) told.push({ pointer: '', detail: `has more mistakes; the first ${MOST_ERRORS} are listed` });
  return new PunctualError('INVALID_REQUEST', detail, { errors: told });
}

/** The beginning of a text that may be of any length. */
export function shortened(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

/** Marks a branch that the types rule out; reaching it is a bug of ours. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value: ${JSON.stringify(value)}`);
}

/** Whether a value is one of our error codes. */
export function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_CODES, code);
}

/** Any thrown value as a PunctualError, so that its code and status can be read. */
export function asPunctualError(thrown: unknown): PunctualError {
  if (thrown instanceof PunctualError) return thrown;
  return new PunctualError('INTERNAL', messageOf(thrown), { cause: thrown });
}

/** What a thrown value says about itself, whatever was thrown. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message || thrown.name;
  if (typeof thrown === 'string') return thrown;
  try {
    return JSON.stringify(thrown) ?? String(thrown);
  } catch {
    return Object.prototype.toString.call(thrown);
  }
}
