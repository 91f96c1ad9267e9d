/** What went wrong with a request: the problem that the API told, or that it could not be reached. */
export class Problem extends Error {
  override readonly name = 'Problem';

  constructor(
    /** The code of the API, such as `JOB_NOT_FOUND`, or `UNREACHABLE`. */
    readonly code: string,
    /** The status of the answer; 0 if there was none. */
    readonly status: number,
    detail: string,
    /** What is wrong with which field of the body. */
    readonly fields: readonly ProblemField[] = [],
  ) {
    super(detail);
  }
}

/** A field of a body, as a JSON pointer, and what is wrong with it. */
export interface ProblemField {
  readonly pointer: string;
  readonly detail: string;
}

interface ProblemDocument {
  readonly code?: string;
  readonly title?: string;
  readonly detail?: string;
  readonly errors?: readonly ProblemField[];
}

/** The problem that an answer tells of, whatever stands in its body. */
export async function problemOf(response: Response): Promise<Problem> {
  let document: ProblemDocument = {};
  try {
    document = (await response.json()) as ProblemDocument;
  } catch {
    // A proxy in between answers with pages of its own.
  }
  const { code = 'UNEXPECTED', title, detail, errors } = document;
  const text = detail ?? title ?? `The node answered with status ${response.status}.`;
  return new Problem(code, response.status, text, errors ?? []);
}

/** Whether something was thrown because no answer came, or not all of it. */
export function isUnreachable(error: unknown): boolean {
  return error instanceof TypeError || (error instanceof DOMException && error.name === 'TimeoutError');
}

/** Whether a read that failed like this may succeed when it is made again. */
export function mayPass({ code, status }: Problem): boolean {
  return code === 'UNREACHABLE' || code === 'UNEXPECTED' || status === 429 || status >= 500;
}

/** Anything that was thrown as a problem; null for what was broken off on purpose. */
export function asProblem(error: unknown): Problem | null {
  if (error instanceof Problem) return error;
  if (error instanceof DOMException && error.name === 'AbortError') return null;
  if (isUnreachable(error)) return new Problem('UNREACHABLE', 0, 'The node cannot be reached.');
  throw error;
}
