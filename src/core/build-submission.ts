import type { Duration } from './duration.js';
import { invalid, messageOf } from './errors.js';
import type { ExecTarget, HttpTarget, JobSubmission } from './job.js';
import type { KeyMode } from './keys.js';
import type { OptionNames } from './known-options.js';
import { type AnyTask, checkInput, TASK_DEFAULTS, type Task, type TaskDefaults } from './task.js';

/** From a task and its input to what is sent to have a job run, for submissions and for steps of workflows. */

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
 * A task, or its name, or what `http()` and `exec()` make, of which the compiler knows neither input nor output. All are one
 * parameter and not several overloads: about a wrong input the compiler would say that the task is not a name.
 */
export type TaskOrName<Input, Output> = string | Task<Input, Output> | HttpTarget | ExecTarget;

/** The same, whatever its input and output. */
export type AnyTaskOrName = AnyTask | string | HttpTarget | ExecTarget;

/** Whether it says itself what runs, and is no task. */
export function isTarget(given: AnyTaskOrName): given is HttpTarget | ExecTarget {
  return typeof given === 'object' && 'type' in given && (given.type === 'http' || given.type === 'exec');
}

/** The submission of one job: the options over the task's defaults, and the checked input. */
export async function buildSubmission(
  taskOrName: AnyTaskOrName,
  input: unknown,
  options: SubmitOptions,
): Promise<JobSubmission> {
  mustBeTask(taskOrName);
  await checkAgainstSchema(taskOrName, input);
  return withInput(commonPart(taskOrName, options), input);
}

/** Whether inputs are checked before they are sent: for targets and for names nothing says what they should be. */
export function checksInput(taskOrName: AnyTaskOrName): taskOrName is AnyTask {
  return typeof taskOrName === 'object' && !isTarget(taskOrName) && Boolean(taskOrName.schema);
}

/** A program without types may pass anything: most often something that its module does not export. */
export function mustBeTask(given: unknown): void {
  if (typeof given === 'string') return;
  const name = typeof given === 'object' && given !== null && 'name' in given ? given.name : undefined;
  if (typeof name === 'string') return;
  if (typeof given === 'object' && given !== null && isTarget(given as AnyTaskOrName)) return;
  const detail = `must be a task made with task(), or the name of one; it is ${given === null ? 'null' : typeof given}`;
  throw invalid([{ pointer: '/task', detail }]);
}

/** The submission as JSON text; the error names the payload if that cannot be written as JSON. */
export function submissionText(submission: JobSubmission): string {
  try {
    return JSON.stringify(submission);
  } catch (thrown) {
    throw invalid([{ pointer: '/payload', detail: `cannot be written as JSON: ${messageOf(thrown)}` }]);
  }
}

/** What the jobs of a submission share: the options over the defaults of the task. */
export function commonPart(taskOrName: AnyTaskOrName, options: SubmitOptions): JobSubmission {
  const what = isTarget(taskOrName) ? { target: taskOrName } : { task: nameOf(taskOrName) };
  const { runAt, startBefore, ...rest } = options;
  return {
    ...(typeof taskOrName === 'object' && 'defaults' in taskOrName && taskOrName.defaults),
    ...withoutUndefined(rest),
    ...what,
    ...(runAt !== undefined && { runAt: momentOf(runAt, 'runAt') }),
    ...(startBefore !== undefined && { startBefore: momentOf(startBefore, 'startBefore') }),
  };
}

function nameOf(taskOrName: AnyTask | string): string {
  return typeof taskOrName === 'string' ? taskOrName : taskOrName.name;
}

/** The submission with its input. */
export function withInput(common: JobSubmission, input: unknown): JobSubmission {
  if (input === undefined) return common;
  // JSON.stringify would silently leave out such a property.
  if (typeof input === 'function' || typeof input === 'symbol') {
    throw invalid([{ pointer: '/payload', detail: `cannot be written as JSON: it is a ${typeof input}` }]);
  }
  return { ...common, payload: input };
}

/** Checks the input as the worker will see it, after JSON: dates are strings by then, methods are gone. */
export async function checkAgainstSchema(taskOrName: AnyTaskOrName, input: unknown): Promise<void> {
  if (!checksInput(taskOrName)) return;
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
