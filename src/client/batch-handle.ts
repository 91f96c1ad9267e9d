import {
  type Batch,
  type BatchState,
  type BatchSubmission,
  type BatchSummary,
  hasEnded,
  type OnMemberFailure,
} from '../core/batch.js';
import { type AnyTaskOrName, buildSubmission, type TaskOrName } from '../core/build-submission.js';
import type { Duration } from '../core/duration.js';
import { invalid, PunctualError } from '../core/errors.js';
import type { JobSubmission } from '../core/job.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import { TASK_DEFAULTS, type TaskDefaults } from '../core/task.js';
import type { Transport } from '../transport/transport.js';
import { EndWait } from './end-wait.js';
import { type Headers, type RepeatableRequest, repeatableWith } from './idempotency-key.js';
import type { Jobs, ResultOptions } from './job-handle.js';
import { eachItem, PAGE_OPTIONS, type PageOptions } from './pages.js';

/** Options of a member of a batch; it has one attempt each time its batch starts. */
export interface MemberOptions extends Omit<TaskDefaults, 'retry'> {
  /** When the member is due; the batch may start once all members are. */
  readonly runAt?: Date | string;
  readonly delay?: Duration;
  /** Jobs of the same key run one after another, or as many at once as `keyConcurrency` of their queue allows. */
  readonly concurrencyKey?: string;
}

/** Options of a batch. */
export interface BatchOptions extends RepeatableRequest {
  /** What becomes of the other members when one fails; default `cancel-rest`. */
  readonly onFailure?: OnMemberFailure;
  /** The batch fails if it could not start within this time. */
  readonly startTimeout?: Duration;
}

/** Which batches to list; what is left out does not matter. */
export interface BatchListOptions extends PageOptions {
  readonly state?: BatchState | readonly BatchState[];
  /** Those that this schedule made. */
  readonly schedule?: string;
}

const { retry: _, ...MEMBER_DEFAULTS } = TASK_DEFAULTS;
const MEMBER_OPTIONS: OptionNames<MemberOptions> = {
  ...MEMBER_DEFAULTS,
  runAt: true,
  delay: true,
  concurrencyKey: true,
};
const BATCH_OPTIONS: OptionNames<BatchOptions> = {
  onFailure: true,
  startTimeout: true,
  idempotencyKey: true,
};
const LIST_OPTIONS: OptionNames<BatchListOptions> = { ...PAGE_OPTIONS, state: true, schedule: true };
const RESULT_OPTIONS: OptionNames<ResultOptions> = { signal: true };

/** A member of a batch, before it is submitted. */
export interface Member<Output> {
  readonly task: AnyTaskOrName;
  readonly input: unknown;
  readonly options: MemberOptions;
  /** Never set at run time: tells the compiler the type of the result. */
  readonly types?: { readonly output: Output };
}

/** The input as an argument; optional if the task's input may be undefined. */
type MemberArguments<Input> = undefined extends Input
  ? [input?: Input, options?: MemberOptions]
  : [input: Input, options?: MemberOptions];

/** A member of a batch: `punctual.batch([member(train, { shard: 0 }), member(train, { shard: 1 })])`. */
export function member<Output = unknown, Input = unknown>(
  task: TaskOrName<Input, Output>,
  ...rest: MemberArguments<NoInfer<Input>>
): Member<Output> {
  const [input, options = {}] = rest as [input?: unknown, options?: MemberOptions];
  checkOptions('member()', options, MEMBER_OPTIONS);
  return { task: task as AnyTaskOrName, input, options };
}

/** The results of the members, in their order. */
export type MemberResults<Members extends readonly Member<unknown>[]> = {
  -readonly [Index in keyof Members]: Members[Index] extends Member<infer Output> ? Output : never;
};

/** The awaited batch ended as failed or cancelled. */
export class BatchFailedError extends PunctualError {
  readonly batch: Batch;

  constructor(batch: Batch) {
    const members = batch.jobs.filter(({ state }) => state === 'failed').map(({ id }) => id);
    const why = batch.error ? `: ${batch.error.message}` : members.length > 0 ? `: ${members[0]} failed` : '';
    super('BATCH_UNSUCCESSFUL', `The batch ${batch.id} is ${batch.state}${why}`);
    this.name = 'BatchFailedError';
    this.batch = batch;
  }
}

/** A batch in the form of the API. */
export async function buildBatch(
  members: readonly Member<unknown>[],
  options: Pick<BatchOptions, 'onFailure' | 'startTimeout'>,
): Promise<BatchSubmission> {
  return { jobs: await Promise.all(members.map(submissionOf)), ...options };
}

/** Requests about batches. */
export class Batches {
  readonly #transport: Transport;
  readonly #jobs: Jobs;
  readonly #ends: EndWait;

  constructor(transport: Transport, jobs: Jobs) {
    this.#transport = transport;
    this.#jobs = jobs;
    this.#ends = new EndWait(transport);
  }

  async submit(
    members: readonly Member<unknown>[],
    options: BatchOptions,
    headers?: Headers,
  ): Promise<Batch> {
    checkOptions('batch()', options, BATCH_OPTIONS);
    const { idempotencyKey, ...rest } = options;
    return this.#transport.request('POST', '/v1/batches', {
      body: await buildBatch(members, rest),
      timeoutMs: 60_000,
      ...repeatableWith(idempotencyKey, headers),
    });
  }

  get(id: string): Promise<Batch> {
    return this.#transport.request('GET', pathOf(id));
  }

  list(options: BatchListOptions): AsyncGenerator<BatchSummary, void, undefined> {
    checkOptions('batches()', options, LIST_OPTIONS);
    const { state, schedule, ...paging } = options;
    const states = typeof state === 'string' ? state : state?.join(',');
    return eachItem(this.#transport, '/v1/batches', { state: states, schedule }, paging);
  }

  steer(verb: 'cancel' | 'retry', id: string): Promise<Batch> {
    return this.#transport.request('POST', `${pathOf(id)}/${verb}`);
  }

  ended(id: string, options: ResultOptions): Promise<Batch> {
    checkOptions('wait()', options, RESULT_OPTIONS);
    return this.#ends.of<Batch>(pathOf(id), ({ state }) => hasEnded(state), options.signal);
  }

  /** The results of all members, in their order, once the batch has succeeded. */
  async results(id: string, options: ResultOptions): Promise<unknown[]> {
    const batch = await this.ended(id, options);
    if (batch.state !== 'succeeded') throw new BatchFailedError(batch);
    return Promise.all(batch.jobs.map((job) => this.#jobs.result(job.id, options)));
  }
}

/** The submission of a member; what its task says about retries is for jobs that run alone. */
async function submissionOf(
  { task, input, options }: Member<unknown>,
  index: number,
): Promise<JobSubmission> {
  try {
    const { retry: _, ...submission } = await buildSubmission(task, input, options);
    return submission;
  } catch (error) {
    if (!(error instanceof PunctualError) || error.errors.length === 0) throw error;
    throw invalid(error.errors.map((each) => ({ ...each, pointer: `/jobs/${index}${each.pointer}` })));
  }
}

/** A batch that was submitted. */
export class BatchHandle<Results> {
  readonly id: string;
  readonly #batches: Batches;

  constructor(id: string, batches: Batches) {
    this.id = id;
    this.#batches = batches;
  }

  /** Waits for the results of all members, in their order; rejects with BatchFailedError if the batch does not succeed. */
  async results(options: ResultOptions = {}): Promise<Results> {
    return (await this.#batches.results(this.id, options)) as Results;
  }

  /** Waits for the end of the batch, whatever it is. */
  wait(options: ResultOptions = {}): Promise<Batch> {
    return this.#batches.ended(this.id, options);
  }

  /** The batch as it is now, with the states of its members. */
  get(): Promise<Batch> {
    return this.#batches.get(this.id);
  }

  /** Cancels all members. */
  cancel(): Promise<Batch> {
    return this.#batches.steer('cancel', this.id);
  }

  /** Lets all members start together again after the batch failed or was cancelled. */
  retry(): Promise<Batch> {
    return this.#batches.steer('retry', this.id);
  }
}

function pathOf(id: string): string {
  return `/v1/batches/${encodeURIComponent(id)}`;
}
