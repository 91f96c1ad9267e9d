import { JobHandle, Jobs, type ResultOptions } from '../client/job-handle.js';
import {
  buildSchedule,
  putSchedule,
  ScheduleHandle,
  type ScheduleInputOption,
  type ScheduleOptions,
  type ScheduleTiming,
} from '../client/schedule-handle.js';
import {
  buildSubmission,
  buildSubmissions,
  type SubmitOptions,
  submissionText,
  submitBulk,
  submitInTransaction,
  type TransactionClient,
} from '../client/task-submission.js';
import { invalid } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import type { Job } from '../core/job.js';
import { RATE_RULE, type RateView, readRate } from '../core/rate.js';
import type { AnyTask, Task } from '../core/task.js';
import type { Page, QueueView } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';
import { HandlerRunner } from '../worker/runners/handler.js';
import type { WorkerOptions } from '../worker/worker-options.js';
import { WorkerRuntime } from '../worker/worker-runtime.js';

/** Options of a single submission. */
export interface SubmitOneOptions extends SubmitOptions {
  /** Submits inside this transaction of the tenant's database; the job may start up to a second after the commit. */
  readonly tx?: TransactionClient;
}

/** The input as an argument; optional if the task's input may be undefined. */
export type InputArguments<Input, Options> = undefined extends Input
  ? [input?: Input, options?: Options]
  : [input: Input, options?: Options];

/** The same options for all jobs of a bulk, or a function that returns the options of each. */
export type BulkOptions<Input> = SubmitOptions | ((input: Input, index: number) => SubmitOptions);

/** What a `Punctual` is made of. */
export interface PunctualParts {
  readonly transport: Transport;
  /** Opens the gateway of a new worker. */
  readonly openGateway: () => WorkerGateway;
  /** The tenant of submissions inside a transaction. */
  readonly tenant: string;
  /** Closes the transport and the gateways. */
  readonly close: () => Promise<void>;
}

/** A connection to the scheduler: over the network, or to a node in the same process. */
export class Punctual {
  readonly #parts: PunctualParts;
  readonly #jobs: Jobs;

  constructor(parts: PunctualParts) {
    this.#parts = parts;
    this.#jobs = new Jobs(parts.transport);
  }

  /**
   * Submits a job. If the answer is lost, the call rejects and it is unknown whether the job exists; a submission
   * with a `key` is repeated instead, because the same key returns the same job.
   */
  submit<Input, Output>(
    task: Task<Input, Output>,
    ...rest: InputArguments<NoInfer<Input>, SubmitOneOptions>
  ): Promise<JobHandle<Output>>;
  submit<Output = unknown>(
    name: string,
    input?: unknown,
    options?: SubmitOneOptions,
  ): Promise<JobHandle<Output>>;
  async submit(
    taskOrName: AnyTask | string,
    input?: unknown,
    options: SubmitOneOptions = {},
  ): Promise<JobHandle<unknown>> {
    const { tx, ...rest } = options;
    const submission = await buildSubmission(taskOrName, input, rest);
    if (tx) return new JobHandle(await submitInTransaction(tx, this.#parts.tenant, submission), this.#jobs);
    const { transport } = this.#parts;
    const job = await transport.request<Job>('POST', '/v1/jobs', {
      ...(transport.inProcess ? { body: submission } : { bodyText: submissionText(submission) }),
      retry: submission.key !== undefined,
    });
    return new JobHandle(job.id, this.#jobs);
  }

  /**
   * Submits many jobs of a task and returns their handles in order. Up to 10,000 jobs (and 16 MiB) are stored all or
   * none; more are divided into several requests, and BulkError tells which jobs are stored if one of them fails.
   */
  submitMany<Input, Output>(
    task: Task<Input, Output>,
    inputs: Iterable<NoInfer<Input>>,
    options?: BulkOptions<NoInfer<Input>>,
  ): Promise<JobHandle<Output>[]>;
  submitMany<Output = unknown>(
    name: string,
    inputs: Iterable<unknown>,
    options?: BulkOptions<unknown>,
  ): Promise<JobHandle<Output>[]>;
  async submitMany(
    taskOrName: AnyTask | string,
    inputs: Iterable<unknown>,
    options: BulkOptions<never> = {},
  ): Promise<JobHandle<unknown>[]> {
    const submissions = await buildSubmissions(taskOrName, inputs, options);
    const ids = await submitBulk(this.#parts.transport, submissions);
    return ids.map((id) => new JobHandle(id, this.#jobs));
  }

  /**
   * Schedules a task by `cron`, `every` or `at`. Creates the schedule, or replaces the definition of the one of that
   * name from its next occurrence on, so a program may do so whenever it starts.
   */
  schedule<Input, Output>(
    task: Task<Input, Output>,
    options: ScheduleOptions & ScheduleTiming & ScheduleInputOption<NoInfer<Input>>,
  ): Promise<ScheduleHandle<Output>>;
  schedule<Output = unknown>(
    name: string,
    options: ScheduleOptions & ScheduleTiming & ScheduleInputOption<unknown>,
  ): Promise<ScheduleHandle<Output>>;
  async schedule(
    taskOrName: AnyTask | string,
    options: ScheduleOptions & ScheduleTiming & { readonly input?: unknown },
  ): Promise<ScheduleHandle<unknown>> {
    const { transport } = this.#parts;
    const { name, definition } = await buildSchedule(taskOrName, options);
    await putSchedule(transport, name, definition);
    return new ScheduleHandle(name, transport, this.#jobs);
  }

  /** The job as it is now. */
  get(id: string): Promise<Job> {
    return this.#jobs.get(id);
  }

  /** The job that was submitted with this key, or null if there is none. */
  async getByKey(key: string): Promise<Job | null> {
    const query = new URLSearchParams({ key, limit: '1' });
    const page = await this.#parts.transport.request<Page<Job>>('GET', `/v1/jobs?${query}`);
    return page.data[0] ?? null;
  }

  /** Waits for the result of a job; rejects with JobFailedError if the job ends without success. */
  result(id: string, options: ResultOptions = {}): Promise<unknown> {
    return this.#jobs.result(id, options);
  }

  /** Cancels a job; a running one is told to stop. */
  cancel(id: string): Promise<Job> {
    return this.#jobs.cancel(id);
  }

  /**
   * Sets the share and the limits of a queue, and creates the queue if it does not exist. They apply to the next
   * starts of jobs, no matter who submitted them. Setting them again does no harm, so a program may do so whenever it
   * starts.
   */
  limitQueue(name: string, limits: QueueLimitOptions): Promise<QueueView> {
    return limitQueue(this.#parts.transport, name, limits);
  }

  /** Makes a worker for the given tasks; it begins to work with `run()` or `start()`. */
  worker(tasks: readonly AnyTask[], options: WorkerOptions = {}): WorkerRuntime {
    return new WorkerRuntime({
      gateway: this.#parts.openGateway(),
      runners: [new HandlerRunner(tasks)],
      options,
    });
  }

  /** Closes all connections. Workers must have ended. */
  async close(): Promise<void> {
    await this.#parts.close();
  }
}

/** The share and the limits of a queue; what is left out stays as it is, null removes a limit. */
export interface QueueLimitOptions {
  /** Its share relative to the tenant's other queues, from 1 to 1000; initially 1. */
  readonly weight?: number;
  /** How many jobs of the queue may run at the same time; initially no limit. */
  readonly concurrency?: number | null;
  /** How many jobs of one `concurrencyKey` may run at the same time; initially 1. */
  readonly keyConcurrency?: number;
  /** How many jobs may start in a time, e.g. `100/1s` or `{ limit: 100, per: '1s', burst: 10 }`; initially no limit. */
  readonly rate?: string | RateView | null;
}

/** Sets limits of a queue, and creates it if it does not exist. */
export async function limitQueue(
  transport: Transport,
  name: string,
  { rate, ...rest }: QueueLimitOptions,
): Promise<QueueView> {
  const body = { ...rest, ...(rate !== undefined && { rate: rate === null ? null : rateOf(rate) }) };
  return transport.request('PATCH', `/v1/queues/${encodeURIComponent(name)}`, { body, retry: true });
}

function rateOf(input: string | RateView): RateView {
  const rate = readRate(input);
  if (rate === null) throw invalid([{ pointer: '/rate', detail: RATE_RULE }]);
  return rate;
}
