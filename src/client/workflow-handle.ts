import { PunctualError } from '../core/errors.js';
import type { Job } from '../core/job.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import type { BuiltWorkflow } from '../core/workflow/workflow-builder.js';
import type {
  EventOutcome,
  ListedWorkflow,
  ListedWorkflowDefinition,
  StoredWorkflowDefinition,
  Workflow,
  WorkflowAfterEvent,
  WorkflowStart,
  WorkflowState,
  WorkflowSubmission,
} from '../core/workflow.js';
import type { Transport } from '../transport/transport.js';
import { EndWait } from './end-wait.js';
import { type Headers, type RepeatableRequest, repeatableWith } from './idempotency-key.js';
import type { Jobs, ResultOptions } from './job-handle.js';
import { eachItem, PAGE_OPTIONS, type PageOptions, queryText } from './pages.js';

/** Options of one start of a workflow. */
export interface StartOptions extends RepeatableRequest {
  /** A second start with the same key returns the same workflow, so a start can be repeated safely. */
  readonly key?: string;
}

/** Options of one start of a workflow by the name of its definition. */
export interface StartDefinedOptions extends StartOptions {
  /** Default: the newest. */
  readonly version?: number;
}

/** Which workflows to list; what is left out does not matter. */
export interface WorkflowListOptions extends PageOptions {
  readonly state?: WorkflowState | readonly WorkflowState[];
  readonly name?: string;
  readonly key?: string;
  /** Those that were started from this definition. */
  readonly definition?: string;
  /** Those that this schedule started. */
  readonly schedule?: string;
}

/** What to read of a workflow besides. */
export interface WorkflowGetOptions {
  /** `attempts`: when each step could run, and when its attempts ran. */
  readonly include?: readonly 'attempts'[];
}

/** What to run again of a workflow that has ended; default what failed, was cancelled or was skipped because of that. */
export interface RetryWorkflowOptions {
  /** A step: it and everything behind it runs again, whatever became of it. */
  readonly from?: string;
}

/** How a workflow is submitted again; it has no key unless one is given. */
export interface RerunOptions extends StartOptions {}

/** The names of the options of a start. */
export const START_OPTIONS: OptionNames<StartOptions> = { key: true, idempotencyKey: true };
/** The same for starts by name. */
export const START_DEFINED_OPTIONS: OptionNames<StartDefinedOptions> = { ...START_OPTIONS, version: true };
const RESULT_OPTIONS: OptionNames<ResultOptions> = { signal: true };
const GET_OPTIONS: OptionNames<WorkflowGetOptions> = { include: true };
const RERUN_OPTIONS: OptionNames<RerunOptions> = START_OPTIONS;
const RETRY_OPTIONS: OptionNames<RetryWorkflowOptions> = { from: true };
const LIST_OPTIONS: OptionNames<WorkflowListOptions> = {
  ...PAGE_OPTIONS,
  state: true,
  name: true,
  key: true,
  definition: true,
  schedule: true,
};

/** The awaited workflow ended as failed or cancelled. */
export class WorkflowFailedError extends PunctualError {
  readonly workflow: Workflow;
  /** The first step that failed; null if none did. */
  readonly job: Job | null;

  constructor(workflow: Workflow, step: string | null, job: Job | null) {
    const why = step === null ? '' : `: step ${step} ${job?.state ?? 'failed'}`;
    const message = job?.error ? `: ${job.error.message}` : '';
    super(
      'WORKFLOW_UNSUCCESSFUL',
      `The workflow ${workflow.id} (${workflow.name}) is ${workflow.state}${why}${message}`,
    );
    this.name = 'WorkflowFailedError';
    this.workflow = workflow;
    this.job = job;
  }
}

/** Requests about workflows. */
export class Workflows {
  readonly #transport: Transport;
  readonly #jobs: Jobs;
  readonly #ends: EndWait;

  constructor(transport: Transport, jobs: Jobs) {
    this.#transport = transport;
    this.#jobs = jobs;
    this.#ends = new EndWait(transport);
  }

  /** A node in this process answers with nothing but the id. */
  submit(
    submission: WorkflowSubmission | WorkflowStart,
    { key, idempotencyKey }: StartOptions,
    headers?: Headers,
  ): Promise<Pick<Workflow, 'id'>> {
    return this.#transport.request('POST', '/v1/workflows', {
      body: { ...submission, ...(key !== undefined && { key }) },
      retry: key !== undefined,
      timeoutMs: 60_000,
      ...repeatableWith(idempotencyKey, headers),
    });
  }

  get(id: string, options: WorkflowGetOptions = {}): Promise<Workflow> {
    checkOptions('get()', options, GET_OPTIONS);
    const query = queryText({ include: options.include?.length ? options.include.join(',') : undefined });
    return this.#transport.request('GET', pathOf(id) + query);
  }

  list(options: WorkflowListOptions): AsyncGenerator<ListedWorkflow, void, undefined> {
    checkOptions('workflows()', options, LIST_OPTIONS);
    const { state, name, key, definition, schedule, ...paging } = options;
    const states = typeof state === 'string' ? state : state?.join(',');
    const query = { state: states, name, key, definition, schedule };
    return eachItem(this.#transport, '/v1/workflows', query, paging);
  }

  /** Keeps a graph under its name. The same again changes nothing, so the request may be repeated. */
  define({ name, jobs, onFailure, running }: WorkflowSubmission): Promise<StoredWorkflowDefinition> {
    const body = { jobs, ...(onFailure && { onFailure }), ...(running && { running }) };
    return this.#transport.request('PUT', definitionPath(name), { body, retry: true, timeoutMs: 60_000 });
  }

  definition(name: string, version?: number): Promise<StoredWorkflowDefinition> {
    const query = version === undefined ? '' : `?version=${version}`;
    return this.#transport.request('GET', definitionPath(name) + query);
  }

  definitions(options: PageOptions): AsyncGenerator<ListedWorkflowDefinition, void, undefined> {
    checkOptions('workflowDefinitions()', options, PAGE_OPTIONS);
    return eachItem(this.#transport, '/v1/workflow-definitions', {}, options);
  }

  async deleteDefinition(name: string): Promise<void> {
    await this.#transport.request('DELETE', definitionPath(name));
  }

  cancel(id: string): Promise<Workflow> {
    return this.#transport.request('POST', `${pathOf(id)}/cancel`);
  }

  hold(id: string): Promise<Workflow> {
    return this.#transport.request('POST', `${pathOf(id)}/hold`);
  }

  release(id: string): Promise<Workflow> {
    return this.#transport.request('POST', `${pathOf(id)}/release`);
  }

  rerun(id: string, options: RerunOptions): Promise<Workflow> {
    checkOptions('rerun()', options, RERUN_OPTIONS);
    const { key, idempotencyKey } = options;
    return this.#transport.request('POST', `${pathOf(id)}/rerun`, {
      body: { ...(key !== undefined && { key }) },
      retry: key !== undefined,
      timeoutMs: 60_000,
      ...repeatableWith(idempotencyKey, undefined),
    });
  }

  retry(id: string, options: RetryWorkflowOptions): Promise<Workflow> {
    checkOptions('retry()', options, RETRY_OPTIONS);
    return this.#transport.request('POST', `${pathOf(id)}/retry`, { body: options });
  }

  async sendEvent(id: string, name: string, payload: unknown): Promise<EventOutcome> {
    const body = { event: name, ...(payload !== undefined && { payload }) };
    // The first event of a name counts, so that sending it again changes nothing.
    const request = { body, retry: true };
    const { event } = await this.#transport.request<WorkflowAfterEvent>(
      'POST',
      `${pathOf(id)}/events`,
      request,
    );
    return event;
  }

  ended(id: string, options: ResultOptions): Promise<Workflow> {
    checkOptions('wait()', options, RESULT_OPTIONS);
    return this.#ends.of<Workflow>(pathOf(id), ({ state }) => state !== 'running', options.signal);
  }

  /** The results of the returned steps once the workflow has succeeded. */
  async result(id: string, returned: BuiltWorkflow['returned'], options: ResultOptions): Promise<unknown> {
    checkOptions('result()', options, RESULT_OPTIONS);
    const workflow = await this.ended(id, options);
    if (workflow.state !== 'succeeded') throw await this.#failure(workflow);
    if (returned === null) return undefined;
    const names = typeof returned === 'string' ? [returned] : Object.values(returned);
    const missing = names.find((name) => !Object.hasOwn(workflow.jobs, name));
    if (missing !== undefined) throw noStep(workflow, missing);
    const resultOf = (step: string) => this.#jobs.result(workflow.jobs[step]!.id, options);
    if (typeof returned === 'string') return resultOf(returned);
    const results = Object.entries(returned).map(async ([key, step]) => [key, await resultOf(step)] as const);
    return Object.fromEntries(await Promise.all(results));
  }

  async #failure(workflow: Workflow): Promise<WorkflowFailedError> {
    const steps = Object.entries(workflow.jobs);
    const failed =
      steps.find(([, { state }]) => state === 'failed') ??
      steps.find(([, { state }]) => state === 'cancelled');
    if (!failed) return new WorkflowFailedError(workflow, null, null);
    // A step that cannot be read must not hide that the workflow has failed.
    const job = await this.#jobs.get(failed[1].id).catch(() => null);
    return new WorkflowFailedError(workflow, failed[0], job);
  }
}

/** A workflow that was started. */
export class WorkflowHandle<Output> {
  readonly id: string;
  readonly #workflows: Workflows;
  readonly #returned: BuiltWorkflow['returned'];

  constructor(id: string, workflows: Workflows, returned: BuiltWorkflow['returned']) {
    this.id = id;
    this.#workflows = workflows;
    this.#returned = returned;
  }

  /**
   * Waits for the end of the workflow and resolves with the result of the step, or the steps, that its function returned;
   * rejects with WorkflowFailedError if it ends without success, and with STEP_NOT_FOUND if it was started from another graph
   * without that step. Undefined for one that was started or found by a name or an id: only code says what is returned.
   */
  async result(options: ResultOptions = {}): Promise<Output> {
    return (await this.#workflows.result(this.id, this.#returned, options)) as Output;
  }

  /** Waits for the end of the workflow, whatever it is. */
  wait(options: ResultOptions = {}): Promise<Workflow> {
    return this.#workflows.ended(this.id, options);
  }

  /** The workflow as it is now, with the states of its steps, and with when they ran if `include` asks for it. */
  get(options: WorkflowGetOptions = {}): Promise<Workflow> {
    return this.#workflows.get(this.id, options);
  }

  /** Cancels the workflow: running steps are told to stop, the others never start. */
  cancel(): Promise<Workflow> {
    return this.#workflows.cancel(this.id);
  }

  /** Lets no step start until the workflow is released; running steps finish, and waits for events and times still end. */
  hold(): Promise<Workflow> {
    return this.#workflows.hold(this.id);
  }

  /** Lets everything start that would have started while the workflow was on hold. */
  release(): Promise<Workflow> {
    return this.#workflows.release(this.id);
  }

  /** Submits the workflow again as it was submitted, whether it has ended or not; the handle is that of the new one. */
  async rerun(options: RerunOptions = {}): Promise<WorkflowHandle<Output>> {
    const { id } = await this.#workflows.rerun(this.id, options);
    return new WorkflowHandle(id, this.#workflows, this.#returned);
  }

  /** Runs the failed steps again and what depends on them, or with `from` a step and everything behind it. */
  retry(options: RetryWorkflowOptions = {}): Promise<Workflow> {
    return this.#workflows.retry(this.id, options);
  }

  /** Ends the steps that wait for this event, now or later; the payload becomes their result. Resolves with what became of it. */
  sendEvent(event: string, payload?: unknown): Promise<EventOutcome> {
    return this.#workflows.sendEvent(this.id, event, payload);
  }
}

/** The code returns a step that the workflow does not have, because it was started from another graph. */
function noStep({ id, name, definition }: Workflow, step: string): PunctualError {
  const graph = definition
    ? `it was started from version ${definition.version} of the definition ${definition.name}`
    : 'it was submitted with other steps, for instance by older code with the same key';
  const detail = `The workflow ${id} (${name}) has no step ${JSON.stringify(step)}, whose result the code returns: ${graph}.`;
  return new PunctualError('STEP_NOT_FOUND', detail);
}

function pathOf(id: string): string {
  return `/v1/workflows/${encodeURIComponent(id)}`;
}

function definitionPath(name: string): string {
  return `/v1/workflow-definitions/${encodeURIComponent(name)}`;
}
