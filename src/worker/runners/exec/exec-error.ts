/** A program that failed or was not run, as it is reported. */
export class ExecError extends Error {
  readonly code: string;
  readonly retryable: boolean;

  constructor(code: string, message: string, { retryable = true }: { readonly retryable?: boolean } = {}) {
    super(message);
    this.name = 'ExecError';
    this.code = code;
    this.retryable = retryable;
    // The stack would name lines of this program, which say nothing about the one that was run.
    Object.defineProperty(this, 'stack', { value: undefined });
  }
}
