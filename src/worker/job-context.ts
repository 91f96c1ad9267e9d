/** What a handler is told about its attempt, and how it tells about itself while it runs. */
export interface JobContext {
  readonly jobId: string;
  /** Whose job it is; a shared worker runs jobs of all tenants. */
  readonly tenant: string;
  /** The task's name, or null for a job with a target of its own. */
  readonly task: string | null;
  /** Counts every attempt of the job, from 1. */
  readonly attempt: number;
  /** Grows with every attempt of the job: pass it to what the handler writes to, so that old attempts are refused. */
  readonly fence: number;
  /**
   * Aborts when the attempt should end: the job was cancelled, its timeout is over, or a newer attempt owns
   * it. Losing contact with the scheduler for a while does not abort it.
   */
  readonly signal: AbortSignal;
  /**
   * Tells how far the job is, 0 … 1. Of calls in quick succession the last one is sent. The promise resolves
   * when it was sent or could not be, and never rejects for a failure of the network.
   */
  readonly progress: (fraction: number, message?: string) => Promise<void>;
  /** Adds a line to the job's log; also `log.debug`, `log.info`, `log.warn` and `log.error`. */
  readonly log: JobLog;
}

/** Adds lines to a job's log. What is not text is shown as Node's console would show it. */
export interface JobLog {
  (message: unknown): void;
  debug(message: unknown): void;
  info(message: unknown): void;
  warn(message: unknown): void;
  error(message: unknown): void;
}
