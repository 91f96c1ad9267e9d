import { invalid, messageOf } from '../core/errors.js';
import type { JobSubmission } from '../core/job.js';
import { type AnyTask, checkInput, type TaskDefaults } from '../worker/task.js';

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
