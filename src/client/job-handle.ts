import { momentOf } from '../core/build-submission.js';
import { PunctualError } from '../core/errors.js';
import { isEnded, type Job, type JobPart, type ListedJob } from '../core/job.js';
import type { Repetition } from '../core/keys.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import type { Page, StoredLogLine } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';
import { EndWait } from './end-wait.js';
import { filterQuery, JOB_FILTER_OPTIONS, type JobFilterOptions } from './job-filter.js';
import { eachItem, PAGE_OPTIONS, type PageOptions } from './pages.js';

/** Options of waiting for a result. */
export interface ResultOptions {
  /** Ends the wait; the job goes on. */
  readonly signal?: AbortSignal;
}

/** Which jobs to list; what is left out does not matter. */
export interface ListOptions extends PageOptions, JobFilterOptions {
  /** Parts of the jobs that are wanted however large they are; otherwise `omitted` names those left out. */
  readonly include?: readonly JobPart[];
}

/** What to change about a job that has not started. */
export interface ChangeOptions {
  readonly runAt?: Date | string;
  /** 1 … 9, 9 first. */
  readonly priority?: number;
  /** The new input. It is not checked against a schema before the job runs. */
  readonly payload?: unknown;
}

const RESULT_OPTIONS: OptionNames<ResultOptions> = { signal: true };
const LIST_OPTIONS: OptionNames<ListOptions> = { ...JOB_FILTER_OPTIONS, ...PAGE_OPTIONS, include: true };
const CHANGE_OPTIONS: OptionNames<ChangeOptions> = { runAt: true, priority: true, payload: true };

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

/** Requests about jobs. */
export class Jobs {
  readonly #transport: Transport;
  readonly #ends: EndWait;

  constructor(transport: Transport) {
    this.#transport = transport;
    this.#ends = new EndWait(transport);
  }

  get(id: string): Promise<Job> {
    return this.#transport.request('GET', pathOf(id));
  }

  /** The job that was submitted with this key, or null if there is none. */
  async getByKey(key: string): Promise<Job | null> {
    const query = new URLSearchParams({ key, limit: '1' });
    const page = await this.#transport.request<Page<Job>>('GET', `/v1/jobs?${query}`);
    return page.data[0] ?? null;
  }

  list(options: ListOptions): AsyncGenerator<ListedJob, void, undefined> {
    checkOptions('list()', options, LIST_OPTIONS);
    const { pageSize, signal, include, ...filter } = options;
    const query = { ...filterQuery(filter), include: include?.length ? include.join(',') : undefined };
    const paging = { ...(pageSize !== undefined && { pageSize }), ...(signal && { signal }) };
    return eachItem(this.#transport, '/v1/jobs', query, paging);
  }

  logs(id: string, options: PageOptions): AsyncGenerator<StoredLogLine, void, undefined> {
    checkOptions('logs()', options, PAGE_OPTIONS);
    return eachItem(this.#transport, `${pathOf(id)}/logs`, {}, options);
  }

  /** Does to a job what the verb says; answers with the job as it is then. */
  steer(verb: 'cancel' | 'retry' | 'hold' | 'release', id: string): Promise<Job> {
    return this.#transport.request('POST', `${pathOf(id)}/${verb}`);
  }

  change(id: string, change: ChangeOptions): Promise<Job> {
    checkOptions('change()', change, CHANGE_OPTIONS);
    const { runAt, ...rest } = change;
    const body = { ...rest, ...(runAt !== undefined && { runAt: momentOf(runAt, 'runAt') }) };
    return this.#transport.request('PATCH', pathOf(id), { body, retry: true });
  }

  /** Waits for the end of a job, however long that takes. */
  ended(id: string, { signal }: ResultOptions): Promise<Job> {
    return this.#ends.of<Job>(pathOf(id), ({ state }) => isEnded(state), signal);
  }

  /** The result of a job once it has succeeded; rejects with JobFailedError if it ends otherwise. */
  async result(id: string, options: ResultOptions): Promise<unknown> {
    checkOptions('result()', options, RESULT_OPTIONS);
    const job = await this.ended(id, options);
    // A surplus submission of a transaction stands for the job that has its key.
    if (job.state === 'skipped' && job.error?.job !== undefined) return this.result(job.error.job, options);
    if (job.state !== 'succeeded') throw new JobFailedError(job);
    return job.result;
  }
}

/** A submitted job. */
export class JobHandle<Output> {
  readonly id: string;
  /** What the answer to the submission said about its key; missing where there was none, as in a transaction. */
  readonly repetition?: Repetition;
  readonly #jobs: Jobs;

  constructor(id: string, jobs: Jobs, repetition?: Repetition) {
    this.id = id;
    this.#jobs = jobs;
    if (repetition) this.repetition = repetition;
  }

  /**
   * Waits for the handler's result; rejects with JobFailedError if the job ends without success. A submission of a
   * transaction whose key another job has gives the result of that job.
   */
  async result(options: ResultOptions = {}): Promise<Output> {
    return (await this.#jobs.result(this.id, options)) as Output;
  }

  /** The job as it is now. */
  get(): Promise<Job> {
    return this.#jobs.get(this.id);
  }

  /** Cancels the job; a running one is told to stop. */
  cancel(): Promise<Job> {
    return this.#jobs.steer('cancel', this.id);
  }

  /** Runs the job again after it has failed or was cancelled. */
  retry(): Promise<Job> {
    return this.#jobs.steer('retry', this.id);
  }

  /** Keeps the job from starting until it is released. */
  hold(): Promise<Job> {
    return this.#jobs.steer('hold', this.id);
  }

  /** Lets the job start that was on hold. */
  release(): Promise<Job> {
    return this.#jobs.steer('release', this.id);
  }

  /** Changes the job, which must not have started. */
  change(change: ChangeOptions): Promise<Job> {
    return this.#jobs.change(this.id, change);
  }

  /** The lines that its attempts have logged so far, oldest first. */
  logs(options: PageOptions = {}): AsyncGenerator<StoredLogLine, void, undefined> {
    return this.#jobs.logs(this.id, options);
  }
}

function pathOf(id: string): string {
  return `/v1/jobs/${encodeURIComponent(id)}`;
}
