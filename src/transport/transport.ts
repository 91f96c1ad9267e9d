import { ERROR_CODES, type ErrorCode, type FieldError, PunctualError } from '../core/errors.js';

/** How a request to the HTTP API is made, whether over the network or inside a process that embeds a node. */

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface RequestOptions {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, in place of `body`: JSON that is written already. */
  readonly bodyText?: string;
  readonly signal?: AbortSignal;
  /** How long one try may take; default 30 s. */
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the request may safely be made twice. Reading requests are, the rest only if this says so. */
  readonly retry?: boolean;
  /** Whether the answer is meant to take long, which must not hold up other requests. */
  readonly longPoll?: boolean;
}

/** Makes requests of the HTTP API: paths and bodies are those of the contract, errors are PunctualErrors. */
export interface Transport {
  /** Whether the node is in this process, so that what is sent is not written as JSON. */
  readonly inProcess?: boolean;
  request<T>(method: Method, path: string, options?: RequestOptions): Promise<T>;
}

/** What an answer that is not a success says, in the words of the product. */
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
    ...(retryAfterHeader !== undefined && Number.isFinite(retryAfter) && { retryAfter }),
  };
  if (!problem) return new PunctualError(codeOfStatus(status), `${from} answered ${status}.`, options);
  const detail = textOr(problem.detail, textOr(problem.title, `${from} answered ${status}.`));
  if (isErrorCode(problem.code)) return new PunctualError(problem.code, detail, options);
  const title = textOr(problem.title, textOr(problem.code, 'Unknown problem'));
  return new PunctualError(
    typeof problem.code === 'string' ? 'INTERNAL' : codeOfStatus(status),
    detail === title ? title : `${title}: ${detail}`,
    options,
  );
}

interface Problem {
  readonly code?: unknown;
  readonly title?: unknown;
  readonly detail?: unknown;
  readonly errors?: unknown;
}

function parseProblem(text: string): Problem | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : null;
  } catch {
    return null;
  }
}

function isErrorCode(code: unknown): code is ErrorCode {
  return typeof code === 'string' && Object.hasOwn(ERROR_CODES, code);
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

/** Answers of proxies and other programs carry no code of ours; their status is all there is to go by. */
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
