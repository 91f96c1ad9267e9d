import { PunctualError } from '../core/errors.js';
import { isEnded, type Job } from '../core/job.js';
import type { Transport } from '../transport/transport.js';

/** How long one long poll waits for the end of a job. */
const WAIT_MS = 20_000;
/** The same when very many results are awaited at once, so that all of them get a connection in turn. */
const CROWDED_WAIT_MS = 1_000;
const CROWD = 256;
const WAIT_SLACK_MS = 10_000;

/** Options of waiting for a result. */
export interface ResultOptions {
  /** Ends the wait; the job goes on. */
  readonly signal?: AbortSignal;
}

/** The awaited job ended as failed, cancelled or skipped. */
export class JobFailedError extends PunctualError {
  readonly job: Job;

  constructor(job: Job) {
    const why = job.error ? `: ${job.error.message}` : '';
    super('JOB_UNSUCCESSFUL', `The job ${job.id} (${job.task ?? job.target.type}) is ${job.state}${why}`);
    this.name = 'JobFailedError';
    this.job = job;
  }
}

/** Requests about single jobs. */
export class Jobs {
  readonly #transport: Transport;
  #waiting = 0;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  get(id: string): Promise<Job> {
    return this.#transport.request('GET', pathOf(id));
  }

  cancel(id: string): Promise<Job> {
    return this.#transport.request('POST', `${pathOf(id)}/cancel`);
  }

  /** Waits for the end of a job, however long that takes. */
  async ended(id: string, { signal }: ResultOptions): Promise<Job> {
    this.#waiting += 1;
    try {
      for (;;) {
        signal?.throwIfAborted();
        const waitMs = this.#waiting > CROWD ? CROWDED_WAIT_MS : WAIT_MS;
        const job = await this.#transport.request<Job>('GET', `${pathOf(id)}?wait=${waitMs}ms`, {
          longPoll: true,
          timeoutMs: waitMs + WAIT_SLACK_MS,
          ...(signal && { signal }),
        });
        if (isEnded(job.state)) return job;
      }
    } finally {
      this.#waiting -= 1;
    }
  }

  /** The result of a job once it has succeeded; rejects with JobFailedError if it ends otherwise. */
  async result(id: string, options: ResultOptions): Promise<unknown> {
    const job = await this.ended(id, options);
    if (job.state !== 'succeeded') throw new JobFailedError(job);
    return job.result;
  }
}

/** A submitted job. */
export class JobHandle<Output> {
  readonly id: string;
  readonly #jobs: Jobs;

  constructor(id: string, jobs: Jobs) {
    this.id = id;
    this.#jobs = jobs;
  }

  /** Waits for the handler's result; rejects with JobFailedError if the job ends without success. */
  async result(options: ResultOptions = {}): Promise<Output> {
    return (await this.#jobs.result(this.id, options)) as Output;
  }

  /** The job as it is now. */
  get(): Promise<Job> {
    return this.#jobs.get(this.id);
  }

  /** Cancels the job; a running one is told to stop. */
  cancel(): Promise<Job> {
    return this.#jobs.cancel(this.id);
  }
}

function pathOf(id: string): string {
  return `/v1/jobs/${encodeURIComponent(id)}`;
}
