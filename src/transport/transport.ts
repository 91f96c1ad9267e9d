import {
  type ErrorCode,
  type ExceededQuota,
  type FieldError,
  isErrorCode,
  PunctualError,
} from '../core/errors.js';

/** The methods of the HTTP API. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** How one request to the HTTP API is made. */
export interface RequestOptions {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** JSON text to send instead of `body`. */
  readonly bodyText?: string;
  /** Bytes to send instead, read anew for each try, and how many. */
  readonly bytes?: { readonly open: () => ByteStream; readonly size: number };
  readonly signal?: AbortSignal;
  /** How long one try may take; default 30 s. */
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the request may be repeated after its answer was lost; default true for GET, false for the rest. */
  readonly retry?: boolean;
  /** Whether the answer may take long; such requests use connections of their own, so that others do not wait behind them. */
  readonly longPoll?: boolean;
}

/** Makes requests to the HTTP API, over the network or to a node in this process; throws PunctualErrors. */
export interface Transport {
  /** Whether the node is in this process, so that bodies are passed as values and not as JSON text. */
  readonly inProcess?: boolean;
  request<T>(method: Method, path: string, options?: RequestOptions): Promise<T>;
  /** Reads an answer while it is being sent, as pieces of text; one that is silent for too long fails. */
  stream?(path: string, options?: StreamOptions): Promise<AsyncIterable<string>>;
  /** The same as bytes. */
  read?(path: string, options?: StreamOptions): Promise<ByteStream>;
}

/** An answer of bytes that is read while it is being sent. */
export type ByteStream = AsyncIterable<Uint8Array>;

/** How an answer is asked for that is read while it is being sent. */
export interface StreamOptions {
  readonly signal?: AbortSignal;
  readonly headers?: Readonly<Record<string, string>>;
}

/** The error of a stream whose transport was closed by its own program; opening it again makes no sense. */
export function connectionClosed(): PunctualError {
  return new PunctualError('CONFIGURATION', 'The connection was closed while a stream was read.');
}

/** The error that an unsuccessful answer (an RFC 9457 problem, or anything else) stands for. */
export function errorFromAnswer(
  status: number,
  text: string,
  retryAfterHeader: string | undefined,
  from: string,
): PunctualError {
  const problem = parseProblem(text);
  const retryAfter = Number(retryAfterHeader);
  const options = {
    errors: fieldErrors(problem?.errors),
    ...quotaOf(problem),
    ...(retryAfterHeader !== undefined && Number.isFinite(retryAfter) && { retryAfter }),
  };
  if (!problem) {
    const about = status === 404 ? aboutPath(from) : '';
    return new PunctualError(codeOfStatus(status), `${from} answered ${status}.${about}`, options);
  }
  const told = textOr(problem.detail, textOr(problem.title, `${from} answered ${status}.`));
  const detail = problem.code === 'NOT_FOUND' ? `${told}${aboutPath(from)}` : told;
  if (isErrorCode(problem.code)) return new PunctualError(problem.code, detail, options);
  const title = textOr(problem.title, textOr(problem.code, 'Unknown problem'));
  return new PunctualError(
    typeof problem.code === 'string' ? 'INTERNAL' : codeOfStatus(status),
    detail === title ? title : `${title}: ${detail}`,
    options,
  );
}

/** A path is right behind a proxy with a prefix, and wrong if it is the beginning of the routes, such as `/v1`. */
function aboutPath(from: string): string {
  const path = URL.canParse(from) ? new URL(from).pathname : '/';
  return path === '/' ? '' : ` The address ${from} has the path ${path}: is it meant?`;
}

interface Problem {
  readonly code?: unknown;
  readonly title?: unknown;
  readonly detail?: unknown;
  readonly errors?: unknown;
  readonly quota?: unknown;
  readonly limit?: unknown;
}

function parseProblem(text: string): Problem | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : null;
  } catch {
    return null;
  }
}

function quotaOf(problem: Problem | null): { readonly quota?: ExceededQuota } {
  const { quota: name, limit } = problem ?? {};
  return typeof name === 'string' && typeof limit === 'number' ? { quota: { name, limit } } : {};
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}

function fieldErrors(errors: unknown): FieldError[] {
  if (!Array.isArray(errors)) return [];
  return errors.flatMap((error: { pointer?: unknown; detail?: unknown } | null) =>
    typeof error?.pointer === 'string'
      ? [{ pointer: error.pointer, detail: textOr(error.detail, 'not valid') }]
      : [],
  );
}

/** Answers of proxies carry no error code of ours, so the code is derived from the status. */
function codeOfStatus(status: number): ErrorCode {
  if (status === 400 || status === 422) return 'INVALID_REQUEST';
  if (status === 401) return 'UNAUTHENTICATED';
  if (status === 403) return 'FORBIDDEN';
  if (status === 404) return 'NOT_FOUND';
  if (status === 405) return 'METHOD_NOT_ALLOWED';
  if (status === 413) return 'BODY_TOO_LARGE';
  if (status === 429 || status === 502 || status === 503 || status === 504) return 'UNREACHABLE';
  return 'INTERNAL';
}
