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
  const definition = typeof taskOrName === 'string' ? null : taskOrName;
  const text = toJson(input);
  // What is checked is what the worker will see: dates have become text by then, methods are gone.
  if (definition?.schema) await checkInput(definition, text === undefined ? null : JSON.parse(text));
  const { runAt, startBefore, ...rest } = options;
  return {
    ...definition?.defaults,
    ...withoutUndefined(rest),
    task: definition ? definition.name : (taskOrName as string),
    ...(input !== undefined && { payload: input }),
    ...(runAt !== undefined && { runAt: momentOf(runAt, 'runAt') }),
    ...(startBefore !== undefined && { startBefore: momentOf(startBefore, 'startBefore') }),
  };
}

function toJson(input: unknown): string | undefined {
  if (input === undefined) return undefined;
  let text: string | undefined;
  try {
    text = JSON.stringify(input);
  } catch (thrown) {
    throw invalid([{ pointer: '/payload', detail: `cannot be written as JSON: ${messageOf(thrown)}` }]);
  }
  if (text === undefined) {
    throw invalid([{ pointer: '/payload', detail: `cannot be written as JSON: it is a ${typeof input}` }]);
  }
  return text;
}

function momentOf(moment: Date | string, field: string): string {
  if (typeof moment === 'string') return moment;
  if (Number.isNaN(moment.getTime()))
    throw invalid([{ pointer: `/${field}`, detail: 'is not a valid date' }]);
  return moment.toISOString();
}

/** An option set to undefined means the default, not a field of that value. */
function withoutUndefined<T extends object>(options: T): Partial<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Partial<T>;
}
