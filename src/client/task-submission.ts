import { SETTINGS } from '../core/config.js';
import type { Duration } from '../core/duration.js';
import { asPunctualError, invalid, messageOf, PunctualError } from '../core/errors.js';
import type { JobSubmission } from '../core/job.js';
import { type KeyMode, NOT_REPEATED, type Repetition } from '../core/keys.js';
import { checkOptions, type OptionNames } from '../core/known-options.js';
import { checkRetry } from '../core/nested-options.js';
import { type AnyTask, checkInput, TASK_DEFAULTS, type Task, type TaskDefaults } from '../core/task.js';
import type { BulkAnswer } from '../core/wire.js';
import type { Transport } from '../transport/transport.js';
import { type Headers, type RepeatableRequest, repeatableWith } from './idempotency-key.js';

/** Options of one job; the defaults are those of its task, then those of the server. */
export interface SubmitOptions extends TaskDefaults {
  /** When the job is due; default now. */
  readonly runAt?: Date | string;
  /** How long from now the job is due, e.g. `5s`; instead of `runAt`. */
  readonly delay?: Duration;
  /** A second submission with the same key returns the same job, so a submission can be repeated safely. */
  readonly key?: string;
  /** What happens if the key has a job already; default `keep`, which returns that job as it is. */
  readonly keyMode?: KeyMode;
  /** The window of the modes `debounce` and `throttle`, e.g. `5m`. */
  readonly keyWindow?: Duration;
  /** Jobs of the same key run one after another, or as many at once as `keyConcurrency` of their queue allows. */
  readonly concurrencyKey?: string;
  /** The job fails if it has not started by this time. */
  readonly startBefore?: Date | string;
  /** Whether the job waits until it is released. */
  readonly hold?: boolean;
}

/** The names of the options of one job. */
export const SUBMIT_OPTIONS: OptionNames<SubmitOptions> = {
  ...TASK_DEFAULTS,
  runAt: true,
  delay: true,
  key: true,
  keyMode: true,
  keyWindow: true,
  concurrencyKey: true,
  startBefore: true,
  hold: true,
};

/**
 * A task, or its name, of which the compiler knows neither input nor output. Both are one parameter and not two
 * overloads: about a wrong input the compiler would say that the task is not a name.
 */
export type TaskOrName<Input, Output> = string | Task<Input, Output>;

/** The submission of one job: the options over the task's defaults, and the checked input. */
export async function buildSubmission(
  taskOrName: AnyTask | string,
  input: unknown,
  options: SubmitOptions,
): Promise<JobSubmission> {
  mustBeTask(taskOrName);
  await checkAgainstSchema(taskOrName, input);
  return withInput(commonPart(taskOrName, options), input);
}

/** The same for an input that refers to results of other jobs: its task can check it only when they are there. */
export function buildOpenSubmission(
  taskOrName: AnyTask | string,
  input: unknown,
  options: SubmitOptions,
): JobSubmission {
  mustBeTask(taskOrName);
  return withInput(commonPart(taskOrName, options), input);
}

/** A program without types may pass anything: most often something that its module does not export. */
function mustBeTask(given: unknown): void {
  if (typeof given === 'string') return;
  const name = typeof given === 'object' && given !== null && 'name' in given ? given.name : undefined;
  if (typeof name === 'string') return;
  const detail = `must be a task made with task(), or the name of one; it is ${given === null ? 'null' : typeof given}`;
  throw invalid([{ pointer: '/task', detail }]);
}

const SUBMIT_MANY = 'submitMany()';

/** The submissions of many jobs; the part that all of them share is built once. */
export async function buildSubmissions(
  taskOrName: AnyTask | string,
  inputs: Iterable<unknown>,
  options: SubmitOptions | ((input: never, index: number) => SubmitOptions),
): Promise<JobSubmission[]> {
  mustBeTask(taskOrName);
  const all = Array.from(inputs);
  if (typeof options !== 'function') {
    mustBeForMany(options, all.length);
    checkOptions(SUBMIT_MANY, options, SUBMIT_OPTIONS);
    checkRetry(SUBMIT_MANY, options.retry);
  }
  if (typeof taskOrName !== 'string' && taskOrName.schema)
    await Promise.all(
      all.map((input, i) => checkAgainstSchema(taskOrName, input).catch((error) => throwAbout(i, error))),
    );
  const common = typeof options === 'function' ? null : commonPart(taskOrName, options);
  return all.map((input, i) => {
    // The caller's own function may throw what it likes.
    const own = typeof options === 'function' ? options(input as never, i) : null;
    try {
      checkOptions(SUBMIT_MANY, own, SUBMIT_OPTIONS);
      checkRetry(SUBMIT_MANY, own?.retry);
      return withInput(common ?? commonPart(taskOrName, own!), input);
    } catch (error) {
      return throwAbout(i, error);
    }
  });
}

/** Throws the error with pointers that name the job of the bulk, as the API does. */
function throwAbout(index: number, error: unknown): never {
  if (!(error instanceof PunctualError) || error.errors.length === 0) throw error;
  throw invalid(error.errors.map((each) => ({ ...each, pointer: `/jobs/${index}${each.pointer}` })));
}

/** Refuses options that cannot be meant for each of many jobs. */
function mustBeForMany(options: SubmitOptions, count: number): void {
  if ('tx' in options && options.tx !== undefined) {
    const detail = 'a bulk cannot be part of your transaction; call submit() for each job';
    throw invalid([{ pointer: '/tx', detail }]);
  }
  if (options.key !== undefined && count > 1) {
    const detail =
      'one key cannot be that of several jobs; give the options as a function: (input) => ({ key: … })';
    throw invalid([{ pointer: '/key', detail }]);
  }
}

/**
 * Whether a submission whose answer was lost may be sent again: if it has a key that its job keeps. With the other modes
 * the second try would make a second job if that of the first one had started or ended meanwhile, or its window was over.
 */
export function isRepeatable({ key, keyMode = 'keep' }: JobSubmission): boolean {
  return key !== undefined && (keyMode === 'keep' || keyMode === 'replace');
}

/** The submission as JSON text; the error names the payload if that cannot be written as JSON. */
export function submissionText(submission: JobSubmission): string {
  try {
    return JSON.stringify(submission);
  } catch (thrown) {
    throw invalid([{ pointer: '/payload', detail: `cannot be written as JSON: ${messageOf(thrown)}` }]);
  }
}

function submissionTextOfBulk(submission: JobSubmission, index: number): string {
  try {
    return submissionText(submission);
  } catch (error) {
    return throwAbout(index, error);
  }
}

function commonPart(taskOrName: AnyTask | string, options: SubmitOptions): JobSubmission {
  const definition = typeof taskOrName === 'string' ? null : taskOrName;
  const { runAt, startBefore, ...rest } = options;
  return {
    ...definition?.defaults,
    ...withoutUndefined(rest),
    task: definition ? definition.name : (taskOrName as string),
    ...(runAt !== undefined && { runAt: momentOf(runAt, 'runAt') }),
    ...(startBefore !== undefined && { startBefore: momentOf(startBefore, 'startBefore') }),
  };
}

function withInput(common: JobSubmission, input: unknown): JobSubmission {
  if (input === undefined) return common;
  // JSON.stringify would silently leave out such a property.
  if (typeof input === 'function' || typeof input === 'symbol') {
    throw invalid([{ pointer: '/payload', detail: `cannot be written as JSON: it is a ${typeof input}` }]);
  }
  return { ...common, payload: input };
}

/** Checks the input as the worker will see it, after JSON: dates are strings by then, methods are gone. */
async function checkAgainstSchema(taskOrName: AnyTask | string, input: unknown): Promise<void> {
  if (typeof taskOrName === 'string' || !taskOrName.schema) return;
  const text = submissionText({ payload: input });
  await checkInput(taskOrName, (JSON.parse(text) as { payload?: unknown }).payload ?? null);
}

/** A moment in the form of the API. */
export function momentOf(moment: Date | string, field: string): string {
  if (typeof moment === 'string') return moment;
  if (Number.isNaN(moment.getTime()))
    throw invalid([{ pointer: `/${field}`, detail: 'is not a valid date' }]);
  return moment.toISOString();
}

/** The options without those that are undefined, which mean the default. */
export function withoutUndefined<T extends object>(options: T): Partial<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** A bulk of several requests failed midway: the jobs in `submitted` are stored; whether later ones are is unknown. */
export class BulkError extends PunctualError {
  /** The ids of the jobs that are stored, in the order of their inputs. */
  readonly submitted: readonly string[];

  constructor(cause: PunctualError, submitted: readonly string[], total: number) {
    super(cause.code, `${submitted.length} of ${total} jobs were submitted, then: ${cause.message}`, {
      cause,
      errors: cause.errors,
      ...(cause.retryAfter !== undefined && { retryAfter: cause.retryAfter }),
    });
    this.name = 'BulkError';
    this.submitted = submitted;
  }
}

/** A job of a bulk that was submitted. */
interface Submitted {
  readonly id: string;
  readonly repetition: Repetition;
}

/** The size of a request without its jobs. */
const ENVELOPE_BYTES = 64;

/**
 * Submits any number of jobs in as few requests as the limits allow. Each request is stored as a whole or not at all;
 * it is repeated after a lost answer only if every job in it may be, or the submission has an idempotency key.
 */
export async function submitBulk(
  transport: Transport,
  submissions: readonly JobSubmission[],
  { idempotencyKey }: RepeatableRequest = {},
  headers?: Headers,
): Promise<readonly Submitted[]> {
  const submitted: Submitted[] = [];
  // Within a process nothing is written as JSON, so the limit on bytes does not apply.
  const texts = transport.inProcess ? null : submissions.map(submissionTextOfBulk);
  const sizes = texts ? texts.map((text) => Buffer.byteLength(text) + 1) : submissions.map(() => 0);
  let part = 0;
  for (const [from, to] of inChunks(sizes)) {
    const jobs = submissions.slice(from, to);
    try {
      // A node of an older version says nothing about repetitions.
      const { ids, repetitions = [] } = await transport.request<BulkAnswer>('POST', '/v1/jobs/bulk', {
        ...(texts ? { bodyText: `{"jobs":[${texts.slice(from, to).join(',')}]}` } : { body: { jobs } }),
        retry: jobs.every(isRepeatable),
        timeoutMs: 60_000,
        ...repeatableWith(idempotencyKey, headers, part),
      });
      part += 1;
      for (const id of ids) submitted.push({ id, repetition: NOT_REPEATED });
      for (const { index, replaced, differs } of repetitions) {
        submitted[from + index] = { id: ids[index]!, repetition: { repeated: true, replaced, differs } };
      }
    } catch (error) {
      if (submitted.length === 0) throw error;
      const ids = submitted.map(({ id }) => id);
      throw new BulkError(asPunctualError(error), ids, submissions.length);
    }
  }
  return submitted;
}

/** Divides a list of submissions of these sizes into ranges that fit the limits of one request. */
export function* inChunks(
  sizes: readonly number[],
  maxJobs: number = SETTINGS.maxBulkJobs.default,
  maxBytes: number = SETTINGS.maxBulkBytes.default,
): Generator<readonly [from: number, to: number]> {
  let start = 0;
  let bytes = ENVELOPE_BYTES;
  for (let i = 0; i < sizes.length; i++) {
    const size = sizes[i]!;
    if (i > start && (i - start >= maxJobs || bytes + size > maxBytes)) {
      yield [start, i];
      start = i;
      bytes = ENVELOPE_BYTES;
    }
    bytes += size;
  }
  if (start < sizes.length) yield [start, sizes.length];
}
