import { invalid, PunctualError } from './errors.js';
import { NAME_PATTERN, NAME_RULE } from './fields.js';
import type { Delivery, Labels, RetryInput } from './job.js';
import {
  fieldErrorsOf,
  isStandardSchema,
  type SchemaInput,
  type SchemaOutput,
  type StandardSchema,
} from './standard-schema.js';

/** How jobs of a task run unless their submission says otherwise. */
export interface TaskDefaults {
  /** The lane the job waits in; default `default`. */
  readonly queue?: string;
  /** 1 … 9, 9 first; default 5. */
  readonly priority?: number;
  /** How often and when a failed or lost attempt is followed by another; default 4 attempts, 2 s, 4 s, 8 s apart. */
  readonly retry?: RetryInput;
  /** How long an attempt may run, e.g. `2m`; default and maximum 20 minutes unless the operator changed it. */
  readonly timeout?: string;
  /** `at-most-once` starts the job exactly once, whatever happens; default `at-least-once`. */
  readonly delivery?: Delivery;
  /** Labels a worker must have. */
  readonly requires?: Labels;
}

export interface TaskOptions extends TaskDefaults {
  readonly input?: undefined;
}

/** Options with a schema: what is submitted is checked, and what the handler gets is what the schema gives. */
export interface SchemaTaskOptions<Schema extends StandardSchema> extends TaskDefaults {
  readonly input: Schema;
}

/** A function that does the work of a task. */
export type Handler<Input, Result> = (input: Input, context: JobContext) => Result;

/** A task with its handler. `Input` is what a submission must give, `Output` what waiting for its result gives. */
export interface Task<Input, Output> {
  readonly name: string;
  readonly defaults: TaskDefaults;
  readonly schema: StandardSchema | null;
  readonly handler: Handler<never, unknown>;
  /** Never set: carries the types of input and output for the compiler. */
  readonly types?: { readonly input: (input: Input) => void; readonly output: Output };
}

/** Any task, whatever it takes and gives. */
export type AnyTask = Task<never, unknown>;

/** Defines a task: its name, how its jobs run by default, and the handler that does the work. */
export function task<Input, Result>(
  name: string,
  handler: Handler<Input, Result>,
): Task<Input, Json<Awaited<Result>>>;
export function task<Schema extends StandardSchema, Result>(
  name: string,
  options: SchemaTaskOptions<Schema>,
  handler: Handler<SchemaOutput<Schema>, Result>,
): Task<SchemaInput<Schema>, Json<Awaited<Result>>>;
export function task<Input, Result>(
  name: string,
  options: TaskOptions,
  handler: Handler<Input, Result>,
): Task<Input, Json<Awaited<Result>>>;
export function task(
  name: string,
  optionsOrHandler: TaskOptions | SchemaTaskOptions<StandardSchema> | Handler<never, unknown>,
  maybeHandler?: Handler<never, unknown>,
): AnyTask {
  const options = typeof optionsOrHandler === 'function' ? {} : optionsOrHandler;
  const handler = typeof optionsOrHandler === 'function' ? optionsOrHandler : maybeHandler;
  const { input: schema, ...defaults } = options;
  if (!NAME_PATTERN.test(name)) {
    throw invalid([{ pointer: '/task', detail: `${JSON.stringify(name)} ${NAME_RULE}` }]);
  }
  if (typeof handler !== 'function') {
    throw new PunctualError('INVALID_REQUEST', `The task ${name} has no handler; pass a function last.`);
  }
  if (schema !== undefined && !isStandardSchema(schema)) {
    throw new PunctualError(
      'INVALID_REQUEST',
      `The input of the task ${name} is not a Standard Schema; pass a schema of zod, valibot, arktype or the like.`,
    );
  }
  return Object.freeze({ name, defaults: Object.freeze(defaults), schema: schema ?? null, handler });
}

/** Checks an input against the task's schema, if it has one, and gives what the schema makes of it. */
export async function checkInput(definition: AnyTask, input: unknown): Promise<unknown> {
  if (!definition.schema) return input;
  const result = await definition.schema['~standard'].validate(input);
  if (result.issues) throw invalid(fieldErrorsOf(result.issues, '/payload'));
  return result.value;
}

/** What a handler is told about its attempt, and how it tells about itself while it runs. */
export interface JobContext {
  readonly jobId: string;
  /** Whose job it is; a shared worker runs jobs of all tenants. */
  readonly tenant: string;
  /** The task's name, or null for a job with a target of its own. */
  readonly task: string | null;
  /** Counts every attempt of the job, from 1. */
  readonly attempt: number;
  /** Grows with every attempt of the job: pass it to what the handler writes to, so that old attempts are refused. */
  readonly fence: number;
  /**
   * Aborts when the attempt should end: the job was cancelled, its timeout is over, or a newer attempt owns
   * it. Losing contact with the scheduler for a while does not abort it.
   */
  readonly signal: AbortSignal;
  /**
   * Tells how far the job is, 0 … 1. Of calls in quick succession the last one is sent. The promise resolves
   * when it was sent or could not be, and never rejects for a failure of the network.
   */
  readonly progress: (fraction: number, message?: string) => Promise<void>;
  /** Adds a line to the job's log; also `log.debug`, `log.info`, `log.warn` and `log.error`. */
  readonly log: JobLog;
}

/** Adds lines to a job's log. What is not text is shown as Node's console would show it. */
export interface JobLog {
  (message: unknown): void;
  debug(message: unknown): void;
  info(message: unknown): void;
  warn(message: unknown): void;
  error(message: unknown): void;
}

/** The type a value has after it was written as JSON and read back: a Date is a string, methods are gone. */
export type Json<T> = unknown extends T
  ? T
  : T extends { toJSON(): infer J }
    ? Json<J>
    : T extends string | number | boolean | null
      ? T
      : T extends undefined
        ? null
        : T extends bigint | symbol | ((...args: never[]) => unknown)
          ? never
          : T extends readonly unknown[]
            ? { [Index in keyof T]: Json<T[Index]> }
            : T extends object
              ? JsonObject<T>
              : never;

type JsonObject<T extends object> = {
  [Key in keyof T as Key extends string | number ? (Kept<T[Key]> extends never ? never : Key) : never]: Json<
    Exclude<T[Key], undefined>
  >;
};

/** What remains of a property's type; nothing if JSON leaves such a property out. */
type Kept<T> = unknown extends T ? T : Exclude<T, undefined | symbol | ((...args: never[]) => unknown)>;

/** Throw this from a handler when trying again cannot help: the job fails at once, whatever retries are left. */
export class PermanentError extends Error {
  readonly code: string | undefined;
  readonly retryable = false;

  constructor(message: string, options: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PermanentError';
    this.code = options.code;
  }
}
