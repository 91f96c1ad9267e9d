import { Artifacts } from '../client/artifacts.js';
import {
  Batches,
  BatchHandle,
  type BatchListOptions,
  type BatchOptions,
  type Member,
  type MemberResults,
} from '../client/batch-handle.js';
import { cancelInTransaction, noJobOfKey } from '../client/cancel-in-transaction.js';
import { EVENT_OPTIONS, type EventOptions, listenToEvents, type StreamedEvent } from '../client/events.js';
import { type Headers, type RepeatableRequest, repeatableWith } from '../client/idempotency-key.js';
import {
  type ChangeOptions,
  JobHandle,
  Jobs,
  type ListOptions,
  type ResultOptions,
} from '../client/job-handle.js';
import { changeJobs, type JobSelection, type ManyOptions, type ManyResult } from '../client/many-jobs.js';
import { eachItem, PAGE_OPTIONS, type PageOptions, queryText } from '../client/pages.js';
import {
  type BatchScheduleOptions,
  buildBatchSchedule,
  buildWorkflowSchedule,
  type WorkflowScheduleOptions,
} from '../client/run-schedules.js';
import {
  buildSchedule,
  eachOccurrence,
  type OccurrencesOptions,
  putSchedule,
  ScheduleHandle,
  type ScheduleInputOption,
  type ScheduleOptions,
  type ScheduleTiming,
} from '../client/schedule-handle.js';
import {
  applySchedules,
  type ScheduleEntry,
  type SchedulesOptions,
  type SchedulesResult,
} from '../client/schedules-as-code.js';
import { Secrets, SigningSecrets } from '../client/secrets.js';
import { submitInTransaction } from '../client/submit-in-transaction.js';
import { buildSubmissions, isRepeatable, submitBulk } from '../client/task-submission.js';
import { Tasks } from '../client/tasks.js';
import type { TransactionClient } from '../client/transaction-client.js';
import {
  START_DEFINED_OPTIONS,
  START_OPTIONS,
  type StartDefinedOptions,
  type StartOptions,
  WorkflowHandle,
  type WorkflowListOptions,
  Workflows,
} from '../client/workflow-handle.js';
import type { BatchSummary } from '../core/batch.js';
import {
  buildSubmission,
  SUBMIT_OPTIONS,
  type SubmitOptions,
  submissionText,
  type TaskOrName,
} from '../core/build-submission.js';
import type { Duration } from '../core/duration.js';
import { invalid } from '../core/errors.js';
import type { WorkerGateway } from '../core/gateway.js';
import type { Job, JobSubmission, ListedJob, SubmittedJob } from '../core/job.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import type { Log } from '../core/log.js';
import { checkRate, checkRetry } from '../core/nested-options.js';
import { RATE_RULE, type RateText, type RateView, readRate } from '../core/rate.js';
import type { AnyTask } from '../core/task.js';
import type {
  ErrorGroupsView,
  ForecastView,
  OccurrenceView,
  QueueHistoryView,
  QueueView,
  RedriveAnswer,
  StatsView,
  StoredLogLine,
  WaitingView,
} from '../core/wire.js';
import type { WorkflowDefinition } from '../core/workflow/workflow-builder.js';
import type { ListedWorkflow, ListedWorkflowDefinition, StoredWorkflowDefinition } from '../core/workflow.js';
import { type Attributes, submitTraced } from '../transport/tracing.js';
import type { Transport } from '../transport/transport.js';
import { runnersOf } from '../worker/runners/runners.js';
import type { WorkerOptions } from '../worker/worker-options.js';
import { WorkerRuntime } from '../worker/worker-runtime.js';

/** Options of a single submission. */
export interface SubmitOneOptions extends SubmitOptions, RepeatableRequest {
  /** Submits inside this transaction of the tenant's database; the job may start up to a second after the commit. */
  readonly tx?: TransactionClient;
}

/** Which failed jobs to run again: those of a task, of a queue, of both, or all. */
export type RedriveOptions =
  | { readonly task: string; readonly queue?: string; readonly dryRun?: boolean }
  | { readonly queue: string; readonly task?: string; readonly dryRun?: boolean }
  | { readonly all: true; readonly dryRun?: boolean };

type StatsOptions = { readonly history?: Duration };
interface ErrorOptions {
  /** How far back; default 24h. */
  readonly since?: Duration;
  readonly task?: string;
  readonly queue?: string;
  /** The most groups; default 100. */
  readonly limit?: number;
}
interface MinutesOptions {
  readonly minutes?: number;
}
interface WaitingOptions {
  /** `later`: how many jobs are not live. */
  readonly include?: readonly 'later'[];
}

const REQUEST_OPTIONS: OptionNames<RepeatableRequest> = { idempotencyKey: true };
const SUBMIT_ONE_OPTIONS: OptionNames<SubmitOneOptions> = {
  ...SUBMIT_OPTIONS,
  ...REQUEST_OPTIONS,
  tx: true,
};
const CANCEL_OPTIONS: OptionNames<Pick<SubmitOneOptions, 'tx'>> = { tx: true };
const ERROR_OPTIONS: OptionNames<ErrorOptions> = { since: true, task: true, queue: true, limit: true };
const MINUTES_OPTIONS: OptionNames<MinutesOptions> = { minutes: true };
const WAITING_OPTIONS: OptionNames<WaitingOptions> = { include: true };
const STATS_OPTIONS: OptionNames<StatsOptions> = { history: true };
const REDRIVE_OPTIONS: OptionNames<RedriveOptions> = { task: true, queue: true, all: true, dryRun: true };

/** The input of a workflow that is started by its code or by its name. */
export type InputOfDefined<W> = W extends WorkflowDefinition<infer Input, unknown> ? Input : unknown;

/** The result of a workflow that is started by its code; a name does not say which steps make it. */
export type OutputOfDefined<W> = W extends WorkflowDefinition<never, infer Output> ? Output : undefined;

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
  /** Where workers log that have no `log` of their own. */
  readonly log?: Log | false;
  /** Closes the transport and the gateways. */
  readonly close: () => Promise<void>;
}

/** A connection to the scheduler: over the network, or to a node in the same process. */
export class Punctual {
  /** The definitions of tasks in the cluster. */
  readonly tasks: Tasks;
  /** What calls need and nobody is shown again. */
  readonly secrets: Secrets;
  /** The secrets with which calls are signed. */
  readonly signingSecrets: SigningSecrets;
  /** Programs and files that jobs run. */
  readonly artifacts: Artifacts;
  readonly #parts: PunctualParts;
  readonly #jobs: Jobs;
  readonly #workflows: Workflows;
  readonly #batches: Batches;

  constructor(parts: PunctualParts) {
    this.#parts = parts;
    this.tasks = new Tasks(parts.transport);
    this.secrets = new Secrets(parts.transport);
    this.signingSecrets = new SigningSecrets(parts.transport);
    this.artifacts = new Artifacts(parts.transport);
    this.#jobs = new Jobs(parts.transport);
    this.#workflows = new Workflows(parts.transport, this.#jobs);
    this.#batches = new Batches(parts.transport, this.#jobs);
  }

  /**
   * Submits a job. If the answer is lost, the call rejects and it is unknown whether the job exists; a submission
   * with a `key` is repeated instead, because the same key returns the same job (but only with the modes `keep` and
   * `replace`: with the others it might make a second job). So is one with an `idempotencyKey`, whatever its job.
   */
  async submit<Output = unknown, Input = unknown>(
    task: TaskOrName<Input, Output>,
    ...rest: InputArguments<NoInfer<Input>, SubmitOneOptions>
  ): Promise<JobHandle<Output>> {
    const [input, given = {}] = rest as [input?: unknown, options?: SubmitOneOptions];
    checkOptions('submit()', given, SUBMIT_ONE_OPTIONS);
    checkRetry('submit()', given.retry);
    const { tx, idempotencyKey, ...options } = given;
    if (tx && idempotencyKey !== undefined) {
      const detail = 'means nothing inside your transaction, which is done wholly or not at all';
      throw invalid([{ pointer: '/idempotencyKey', detail }]);
    }
    const submission = await buildSubmission(task, input, options);
    if (tx) return new JobHandle(await submitInTransaction(tx, this.#parts.tenant, submission), this.#jobs);
    const { transport } = this.#parts;
    const send = (headers?: Headers) =>
      transport.request<SubmittedJob>('POST', '/v1/jobs', {
        ...(transport.inProcess ? { body: submission } : { bodyText: submissionText(submission) }),
        retry: isRepeatable(submission),
        ...repeatableWith(idempotencyKey, headers),
      });
    const about = this.#about(submission);
    const job = await submitTraced(about, send, (stored) => ({ 'punctual.job.id': stored.id }));
    const { id, repeated, replaced, differs } = job;
    // A node of an older version says nothing about repetitions.
    const repetition = repeated === undefined ? undefined : { repeated, replaced, differs };
    return new JobHandle(id, this.#jobs, repetition);
  }

  /**
   * Submits many jobs of a task and returns their handles in order. Up to 10,000 jobs (and 16 MiB) are stored all or
   * none; more are divided into several requests, and BulkError tells which jobs are stored if one of them fails. With
   * an `idempotencyKey`, the same call again stores only what the first one did not.
   */
  async submitMany<Output = unknown, Input = unknown>(
    task: TaskOrName<Input, Output>,
    inputs: Iterable<NoInfer<Input>>,
    options: BulkOptions<NoInfer<Input>> = {},
    request: RepeatableRequest = {},
  ): Promise<JobHandle<Output>[]> {
    checkOptions('submitMany()', request, REQUEST_OPTIONS);
    const submissions = await buildSubmissions(task, inputs, options);
    const send = (headers?: Headers) => submitBulk(this.#parts.transport, submissions, request, headers);
    const about = { ...this.#about(submissions[0] ?? {}), 'punctual.jobs': submissions.length };
    const submitted = await submitTraced(about, send, () => ({}));
    return submitted.map(({ id, repetition }) => new JobHandle(id, this.#jobs, repetition));
  }

  /**
   * Starts a workflow: all of its steps are stored, or none. If the answer is lost, the call rejects and it is unknown
   * whether the workflow exists; with a `key` or an `idempotencyKey` the request is repeated instead.
   */
  async start<Input, Output>(
    workflow: WorkflowDefinition<Input, Output>,
    ...rest: InputArguments<NoInfer<Input>, StartOptions>
  ): Promise<WorkflowHandle<Output>> {
    const [input, options = {}] = rest as [input: Input, options?: StartOptions];
    checkOptions('start()', options, START_OPTIONS);
    const built = await workflow.build(input);
    const about = { 'punctual.tenant': this.#parts.tenant, 'punctual.workflow': built.submission.name };
    const send = (headers?: Headers) => this.#workflows.submit(built.submission, options, headers);
    const { id } = await submitTraced(about, send, (stored) => ({ 'punctual.workflow.id': stored.id }));
    return new WorkflowHandle(id, this.#workflows, built.returned);
  }

  /**
   * Keeps the graph of a workflow under its name, so that it can be started by that name and by schedules. Its function is
   * called once, with references in place of the input: they can only be passed on to steps. The same graph again changes
   * nothing, so a program may do so whenever it starts; another one becomes the next version.
   */
  async define(workflow: WorkflowDefinition<never, unknown>): Promise<StoredWorkflowDefinition> {
    return this.#workflows.define((await workflow.buildDefinition()).submission);
  }

  /**
   * Starts the stored definition of a workflow, by its code or by its name; default its newest version. Started by its name, it
   * has no `result()`: only the code says which of its steps make that.
   */
  async startDefined<W extends WorkflowDefinition<never, unknown> | string>(
    workflow: W,
    ...rest: InputArguments<InputOfDefined<W>, StartDefinedOptions>
  ): Promise<WorkflowHandle<OutputOfDefined<W>>> {
    const [input, options = {}] = rest as [input?: unknown, options?: StartDefinedOptions];
    checkOptions('startDefined()', options, START_DEFINED_OPTIONS);
    const { version, ...request } = options;
    const definition = typeof workflow === 'string' ? workflow : workflow.name;
    const returned = typeof workflow === 'string' ? null : (await workflow.buildDefinition()).returned;
    const start = {
      definition,
      ...(version !== undefined && { version }),
      ...(input !== undefined && { input }),
    };
    const about = { 'punctual.tenant': this.#parts.tenant, 'punctual.workflow': definition };
    const send = (headers?: Headers) => this.#workflows.submit(start, request, headers);
    const { id } = await submitTraced(about, send, (stored) => ({ 'punctual.workflow.id': stored.id }));
    return new WorkflowHandle(id, this.#workflows, returned);
  }

  /** A stored definition with its steps: its newest version, or another one that is kept. */
  workflowDefinition(name: string, version?: number): Promise<StoredWorkflowDefinition> {
    return this.#workflows.definition(name, version);
  }

  /** The stored definitions by name, without their steps, read page by page. */
  workflowDefinitions(options: PageOptions = {}): AsyncGenerator<ListedWorkflowDefinition, void, undefined> {
    return this.#workflows.definitions(options);
  }

  /** Deletes a stored definition; workflows that were started from it go on. */
  deleteWorkflowDefinition(name: string): Promise<void> {
    return this.#workflows.deleteDefinition(name);
  }

  /** A workflow by its id; its handle does not know which of its steps make its result. */
  workflow(id: string): WorkflowHandle<undefined> {
    return new WorkflowHandle(id, this.#workflows, null);
  }

  /** Workflows that fit, newest first and without their steps, read page by page. */
  workflows(options: WorkflowListOptions = {}): AsyncGenerator<ListedWorkflow, void, undefined> {
    return this.#workflows.list(options);
  }

  /** Submits jobs that start together or not at all: `punctual.batch([member(train, { shard: 0 }), …])`. */
  async batch<const Members extends readonly Member<unknown>[]>(
    members: Members,
    options: BatchOptions = {},
  ): Promise<BatchHandle<MemberResults<Members>>> {
    const about = { 'punctual.tenant': this.#parts.tenant, 'punctual.jobs': members.length };
    const send = (headers?: Headers) => this.#batches.submit(members, options, headers);
    const { id } = await submitTraced(about, send, (stored) => ({ 'punctual.batch.id': stored.id }));
    return new BatchHandle(id, this.#batches);
  }

  /** Batches that fit, newest first and without their members, read page by page. */
  batches(options: BatchListOptions = {}): AsyncGenerator<BatchSummary, void, undefined> {
    return this.#batches.list(options);
  }

  /** What the span of a submission says. */
  #about({ task, queue = 'default' }: JobSubmission): Attributes {
    const { tenant } = this.#parts;
    return {
      'punctual.tenant': tenant,
      'punctual.queue': queue,
      ...(task !== undefined && { 'punctual.task': task }),
    };
  }

  /**
   * Schedules a task by `cron`, `every` or `at`. Creates the schedule, or replaces the definition of the one of that
   * name from its next occurrence on, so a program may do so whenever it starts.
   */
  async schedule<Output = unknown, Input = unknown>(
    task: TaskOrName<Input, Output>,
    options: ScheduleOptions & ScheduleTiming & ScheduleInputOption<NoInfer<Input>>,
  ): Promise<ScheduleHandle<Output>> {
    const { transport } = this.#parts;
    const { name, definition } = await buildSchedule(task, options);
    await putSchedule(transport, name, definition);
    return new ScheduleHandle(name, transport, (id) => new JobHandle<Output>(id, this.#jobs));
  }

  /**
   * The same for a workflow, by its code or by its name: each occurrence starts the newest version of its stored definition,
   * which `define()` makes.
   */
  async scheduleWorkflow<Output = undefined, Input = unknown>(
    workflow: WorkflowDefinition<Input, Output> | string,
    options: WorkflowScheduleOptions<NoInfer<Input>>,
  ): Promise<ScheduleHandle<Output, WorkflowHandle<Output>>> {
    const { transport } = this.#parts;
    const { name, definition } = buildWorkflowSchedule(workflow, options);
    const returned = typeof workflow === 'string' ? null : (await workflow.buildDefinition()).returned;
    await putSchedule(transport, name, definition);
    return new ScheduleHandle(
      name,
      transport,
      (id) => new WorkflowHandle<Output>(id, this.#workflows, returned),
    );
  }

  /** The same for jobs that start together or not at all. */
  async scheduleBatch<const Members extends readonly Member<unknown>[]>(
    members: Members,
    options: BatchScheduleOptions,
  ): Promise<ScheduleHandle<MemberResults<Members>, BatchHandle<MemberResults<Members>>>> {
    const { transport } = this.#parts;
    const { name, definition } = await buildBatchSchedule(members, options);
    await putSchedule(transport, name, definition);
    return new ScheduleHandle(
      name,
      transport,
      (id) => new BatchHandle<MemberResults<Members>>(id, this.#batches),
    );
  }

  /**
   * Makes the schedules of this program what its code says: creates and changes what differs, and with `prune` removes
   * what has left the code. Schedules that are not of this `owner` are never removed. A program may do so whenever it
   * starts; where nothing differs, nothing is written.
   */
  schedules(entries: readonly ScheduleEntry[], options: SchedulesOptions = {}): Promise<SchedulesResult> {
    return applySchedules(this.#parts.transport, entries, options);
  }

  /** The ledger of a schedule, newest first, read page by page. */
  occurrences(
    schedule: string,
    options: Omit<OccurrencesOptions, 'limit'> & PageOptions = {},
  ): AsyncGenerator<OccurrenceView, void, undefined> {
    return eachOccurrence(this.#parts.transport, schedule, options);
  }

  /** The job as it is now. */
  get(id: string): Promise<Job> {
    return this.#jobs.get(id);
  }

  /** The job that was submitted with this key, or null if there is none. */
  getByKey(key: string): Promise<Job | null> {
    return this.#jobs.getByKey(key);
  }

  /** Jobs that fit, newest first, read page by page: `for await (const job of punctual.list({ state: 'failed' }))`. */
  list(options: ListOptions = {}): AsyncGenerator<ListedJob, void, undefined> {
    return this.#jobs.list(options);
  }

  /** The lines that the attempts of a job have logged so far, oldest first. */
  logs(id: string, options: PageOptions = {}): AsyncGenerator<StoredLogLine, void, undefined> {
    return this.#jobs.logs(id, options);
  }

  /** Waits for the result of a job; rejects with JobFailedError if the job ends without success. */
  result(id: string, options: ResultOptions = {}): Promise<unknown> {
    return this.#jobs.result(id, options);
  }

  /**
   * Cancels a job, by its id or its key; a running one is told to stop. With `tx`, this happens up to a second after
   * that transaction commits; a job that has ended by then stays as it is.
   */
  cancel(job: string | { readonly key: string }, options?: { readonly tx?: undefined }): Promise<Job>;
  cancel(job: string | { readonly key: string }, options: { readonly tx: TransactionClient }): Promise<void>;
  async cancel(
    job: string | { readonly key: string },
    options: { readonly tx?: TransactionClient | undefined } = {},
  ): Promise<unknown> {
    checkOptions('cancel()', options, CANCEL_OPTIONS);
    const { tx } = options;
    if (tx) return cancelInTransaction(tx, this.#parts.tenant, job);
    if (typeof job === 'string') return this.#jobs.steer('cancel', job);
    const found = await this.#jobs.getByKey(job.key);
    if (!found) throw noJobOfKey(job.key);
    return this.#jobs.steer('cancel', found.id);
  }

  /** Runs a job again that has failed or was cancelled. */
  retry(id: string): Promise<Job> {
    return this.#jobs.steer('retry', id);
  }

  /** Keeps a waiting job from starting until it is released. */
  hold(id: string): Promise<Job> {
    return this.#jobs.steer('hold', id);
  }

  /** Lets a job start that was on hold. */
  release(id: string): Promise<Job> {
    return this.#jobs.steer('release', id);
  }

  /** Changes a job that has not started. */
  change(id: string, change: ChangeOptions): Promise<Job> {
    return this.#jobs.change(id, change);
  }

  /**
   * Runs the failed jobs of a task, of a queue, or all of them again. One call works for about two seconds, and `more`
   * tells whether jobs are left; `retryMany` goes on to the end.
   */
  redrive(selection: RedriveOptions): Promise<RedriveAnswer> {
    checkOptions('redrive()', selection, REDRIVE_OPTIONS);
    return this.#parts.transport.request('POST', '/v1/jobs/redrive', { body: selection });
  }

  /** Totals of the cluster that survive failovers; with `history` also by the minute for this time back. */
  stats(options: StatsOptions = {}): Promise<StatsView> {
    checkOptions('stats()', options, STATS_OPTIONS);
    return this.#parts.transport.request('GET', `/v1/stats${queryText(options)}`);
  }

  /** Failed jobs, grouped by task and by what their errors have in common; the most frequent first. */
  errors(options: ErrorOptions = {}): Promise<ErrorGroupsView> {
    checkOptions('errors()', options, ERROR_OPTIONS);
    return this.#parts.transport.request('GET', `/v1/errors${queryText(asText(options))}`);
  }

  /** How much becomes due in each of the minutes ahead, 60 unless told, and how many slots that wants. */
  forecast(options: MinutesOptions = {}): Promise<ForecastView> {
    checkOptions('forecast()', options, MINUTES_OPTIONS);
    return this.#parts.transport.request('GET', `/v1/forecast${queryText(asText(options))}`);
  }

  /** What a queue did in each of the last minutes, 60 unless told. */
  queueHistory(name: string, options: MinutesOptions = {}): Promise<QueueHistoryView> {
    checkOptions('queueHistory()', options, MINUTES_OPTIONS);
    const path = `/v1/queues/${encodeURIComponent(name)}/history`;
    return this.#parts.transport.request('GET', path + queryText(asText(options)));
  }

  /** What live jobs wait for, by reason, and how many jobs are not live if `include` asks for that. */
  waiting(options: WaitingOptions = {}): Promise<WaitingView> {
    checkOptions('waiting()', options, WAITING_OPTIONS);
    const include = options.include?.length ? options.include.join(',') : undefined;
    return this.#parts.transport.request('GET', `/v1/waiting${queryText({ include })}`);
  }

  /** The queues of the tenant with their figures and limits, by name. */
  queues(options: PageOptions = {}): AsyncGenerator<QueueView, void, undefined> {
    checkOptions('queues()', options, PAGE_OPTIONS);
    return eachItem(this.#parts.transport, '/v1/queues', {}, options);
  }

  /**
   * Listens to what happens: `for await (const event of punctual.events({ types: ['job.failed'], signal }))`. The first
   * event is `hello`: whatever happens from then on is told. After `reset` events may be missing, so read anew what you
   * need to know. Lost connections are opened again, and the stream goes on where it was.
   */
  events(options: EventOptions = {}): AsyncGenerator<StreamedEvent, void, undefined> {
    checkOptions('events()', options, EVENT_OPTIONS);
    return listenToEvents(this.#parts.transport, options);
  }

  /** Cancels many jobs; running ones are told to stop. */
  cancelMany(selection: JobSelection, options?: ManyOptions): Promise<ManyResult> {
    return changeJobs(this.#parts.transport, 'cancel', selection, options);
  }

  /** Keeps many waiting jobs from starting until they are released. */
  holdMany(selection: JobSelection, options?: ManyOptions): Promise<ManyResult> {
    return changeJobs(this.#parts.transport, 'hold', selection, options);
  }

  /** Lets many held jobs start. */
  releaseMany(selection: JobSelection, options?: ManyOptions): Promise<ManyResult> {
    return changeJobs(this.#parts.transport, 'release', selection, options);
  }

  /** Runs many failed jobs again; with `state: 'cancelled'` in the filter, or by their ids, cancelled ones as well. */
  retryMany(selection: JobSelection, options?: ManyOptions): Promise<ManyResult> {
    return changeJobs(this.#parts.transport, 'redrive', selection, options);
  }

  /** Deletes many jobs that have ended, with their keys and logs. */
  deleteMany(selection: JobSelection, options?: ManyOptions): Promise<ManyResult> {
    return changeJobs(this.#parts.transport, 'delete', selection, options);
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
    const { log, openGateway } = this.#parts;
    return new WorkerRuntime({
      gateway: openGateway(),
      runners: runnersOf(tasks, options),
      options: log === undefined ? options : { ...options, log: options.log ?? log },
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
  readonly rate?: RateText | RateView | null;
}

const LIMIT_OPTIONS: OptionNames<QueueLimitOptions> = {
  weight: true,
  concurrency: true,
  keyConcurrency: true,
  rate: true,
};

/** Sets limits of a queue, and creates it if it does not exist. */
export async function limitQueue(
  transport: Transport,
  name: string,
  limits: QueueLimitOptions,
): Promise<QueueView> {
  checkOptions('limitQueue()', limits, LIMIT_OPTIONS);
  checkRate('limitQueue()', limits.rate);
  const { rate, ...rest } = limits;
  const body = { ...rest, ...(rate !== undefined && { rate: rate === null ? null : rateOf(rate) }) };
  return transport.request('PATCH', `/v1/queues/${encodeURIComponent(name)}`, { body, retry: true });
}

function rateOf(input: RateText | RateView): RateView {
  const rate = readRate(input);
  if (rate === null) throw invalid([{ pointer: '/rate', detail: RATE_RULE }]);
  return rate;
}

/** Options as the texts of a query. */
function asText(options: object): Record<string, string | undefined> {
  const entries = Object.entries(options).map(([name, value]) => [name, value?.toString()] as const);
  return Object.fromEntries(entries);
}
