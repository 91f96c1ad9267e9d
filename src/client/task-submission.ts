import { SETTINGS } from '../core/config.js';
import { MAX_DURATION_MS } from '../core/duration.js';
import { asPunctualError, invalid, messageOf, PunctualError } from '../core/errors.js';
import type { JobSubmission } from '../core/job.js';
import { parseSubmission } from '../core/submission.js';
import { type AnyTask, checkInput, type TaskDefaults } from '../core/task.js';
import type { Transport } from '../transport/transport.js';

/** How one job runs; what is left out comes from its task, then from the server's defaults. */
export interface SubmitOptions extends TaskDefaults {
  /** When the job is due; default now. */
  readonly runAt?: Date | string;
  /** How long from now the job is due, e.g. `5s`; in place of `runAt`. */
  readonly delay?: string;
  /** The same key again gives the same job, so that a submission can safely be repeated. */
  readonly key?: string;
  /** Jobs with the same one run one after another, or as many at once as their queue allows. */
  readonly concurrencyKey?: string;
  /** The job fails if it has not started by then. */
  readonly startBefore?: Date | string;
  /** Waits until it is released. */
  readonly hold?: boolean;
}

/** What is sent for one job: the task's defaults under the options, and an input that JSON can hold. */
export async function buildSubmission(
  taskOrName: AnyTask | string,
  input: unknown,
  options: SubmitOptions,
): Promise<JobSubmission> {
  await checkAgainstSchema(taskOrName, input);
  return withInput(commonPart(taskOrName, options), input);
}

/** The same for many jobs: what is equal in all of them is worked out once. */
export async function buildSubmissions(
  taskOrName: AnyTask | string,
  inputs: Iterable<unknown>,
  options: SubmitOptions | ((input: never, index: number) => SubmitOptions),
): Promise<JobSubmission[]> {
  const all = Array.from(inputs);
  if (typeof taskOrName !== 'string' && taskOrName.schema)
    await Promise.all(all.map((input) => checkAgainstSchema(taskOrName, input)));
  if (typeof options === 'function')
    return all.map((input, i) => withInput(commonPart(taskOrName, options(input as never, i)), input));
  const common = commonPart(taskOrName, options);
  return all.map((input) => withInput(common, input));
}

/** The submission as JSON; says which part of it cannot be written. */
export function submissionText(submission: JobSubmission): string {
  try {
    return JSON.stringify(submission);
  } catch (thrown) {
    throw invalid([{ pointer: '/payload', detail: `cannot be written as JSON: ${messageOf(thrown)}` }]);
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
  // Inside an object JSON would leave these out without a word.
  if (typeof input === 'function' || typeof input === 'symbol') {
    throw invalid([{ pointer: '/payload', detail: `cannot be written as JSON: it is a ${typeof input}` }]);
  }
  return { ...common, payload: input };
}

/** What is checked is what the worker will see: dates have become text by then, methods are gone. */
async function checkAgainstSchema(taskOrName: AnyTask | string, input: unknown): Promise<void> {
  if (typeof taskOrName === 'string' || !taskOrName.schema) return;
  const text = submissionText({ payload: input });
  await checkInput(taskOrName, (JSON.parse(text) as { payload?: unknown }).payload ?? null);
}

/** A moment as the API takes it. */
export function momentOf(moment: Date | string, field: string): string {
  if (typeof moment === 'string') return moment;
  if (Number.isNaN(moment.getTime()))
    throw invalid([{ pointer: `/${field}`, detail: 'is not a valid date' }]);
  return moment.toISOString();
}

/** An option set to undefined means the default, not a field of that value. */
function withoutUndefined<T extends object>(options: T): Partial<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<T>;
}

/** A bulk of several requests broke off: the jobs in `submitted` are stored, none after them is known to be. */
export class BulkError extends PunctualError {
  /** Ids of the jobs that were stored before, in the order of their inputs. */
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

/** Room for what surrounds the jobs in a request. */
const ENVELOPE_BYTES = 64;

/**
 * Submits any number of jobs, as many as fit in each request. Each request is stored whole or not at all; it
 * is repeated after a lost answer only if every job in it has a key.
 */
export async function submitBulk(
  transport: Transport,
  submissions: readonly JobSubmission[],
): Promise<readonly string[]> {
  const submitted: string[] = [];
  // Inside a process nothing is written as JSON, so there is no size that would have to be kept to.
  const texts = transport.inProcess ? null : submissions.map(submissionText);
  const sizes = texts ? texts.map((text) => Buffer.byteLength(text) + 1) : submissions.map(() => 0);
  for (const [from, to] of inChunks(sizes)) {
    const jobs = submissions.slice(from, to);
    try {
      const { ids } = await transport.request<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
        ...(texts ? { bodyText: `{"jobs":[${texts.slice(from, to).join(',')}]}` } : { body: { jobs } }),
        retry: jobs.every((job) => job.key !== undefined),
        timeoutMs: 60_000,
      });
      for (const id of ids) submitted.push(id);
    } catch (error) {
      if (submitted.length === 0) throw error;
      throw new BulkError(asPunctualError(error), submitted, submissions.length);
    }
  }
  return submitted;
}

/** Where to cut a list of submissions of these sizes, so that each piece keeps to the limits of one request. */
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

/** A Postgres client that is inside a transaction; a client of `pg` is one. */
export interface TransactionClient {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
}

const SUBMIT_JOB = 'SELECT punctual.submit_job($1, $2) AS id';

/**
 * Submits a job in the caller's own transaction: the job exists if and when that commits. It is checked here,
 * because the database takes what it is given; only the operator's limit of timeouts is not known here.
 */
export async function submitInTransaction(
  tx: TransactionClient,
  tenant: string,
  submission: JobSubmission,
): Promise<string> {
  parseSubmission(submission, {
    now: Date.now(),
    maxPayload: SETTINGS.maxPayload.default,
    jobTimeout: SETTINGS.jobTimeout.default,
    maxJobTimeout: MAX_DURATION_MS,
    maxDepth: SETTINGS.maxDepth.default,
  });
  const { rows } = await tx.query(SUBMIT_JOB, [tenant, JSON.stringify(submission)]);
  const id = (rows[0] as { id?: unknown } | undefined)?.id;
  if (typeof id !== 'string') {
    throw new PunctualError('INTERNAL', 'The database took the job but gave no id; run "punctual doctor".');
  }
  return id;
}
