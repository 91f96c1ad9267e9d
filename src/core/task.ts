import { invalid, PunctualError } from './errors.js';
import { type Delivery, type Labels, NAME_PATTERN, NAME_RULE, type RetryInput } from './job.js';
import {
  fieldErrorsOf,
  isStandardSchema,
  type SchemaInput,
  type SchemaOutput,
  type StandardSchema,
} from './standard-schema.js';

/** How jobs of a task run unless their submission says otherwise. */
export interface TaskDefaults {
  /** The queue the job waits in; default `default`. */
  readonly queue?: string;
  /** 1 … 9, 9 first; default 5. */
  readonly priority?: number;
  /** How many attempts there are and how long the pauses between them; default 4 attempts, 2 s, 4 s and 8 s apart. */
  readonly retry?: RetryInput;
  /** How long an attempt may run, e.g. `2m`; default and maximum 20 minutes unless the operator changed it. */
  readonly timeout?: string;
  /** `at-most-once` starts the job exactly once, whatever happens; default `at-least-once`. */
  readonly delivery?: Delivery;
  /** Labels a worker must have. */
  readonly requires?: Labels;
}

/** Options of a task whose input is not checked. */
export interface TaskOptions extends TaskDefaults {
  readonly input?: undefined;
}

/** Options with a schema: inputs are checked at submission, and the handler gets the schema's output. */
export interface SchemaTaskOptions<Schema extends StandardSchema> extends TaskDefaults {
  readonly input: Schema;
}

/** A function that does the work of a task. */
export type Handler<Input, Result> = (input: Input, context: JobContext) => Result;

/** A task with its handler. `Input` is the type of a submission's input, `Output` the type of a job's result. */
export interface Task<Input, Output> {
  readonly name: string;
  readonly defaults: TaskDefaults;
  readonly schema: StandardSchema | null;
  readonly handler: Handler<never, unknown>;
  /** Never set at run time: tells the compiler the types of input and output. */
  readonly types?: { readonly input: (input: Input) => void; readonly output: Output };
}

/** A task of any input and output. */
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

/** Checks an input against the task's schema, if it has one, and returns the schema's output. */
export async function checkInput(definition: AnyTask, input: unknown): Promise<unknown> {
  if (!definition.schema) return input;
  const result = await definition.schema['~standard'].validate(input);
  if (result.issues) throw invalid(fieldErrorsOf(result.issues, '/payload'));
  return result.value;
}

/** What a handler knows about its attempt, and its means to report progress and write to the job's log. */
export interface JobContext {
  readonly jobId: string;
  /** The tenant that owns the job; a shared worker runs jobs of all tenants. */
  readonly tenant: string;
  /** The task's name; null for a job that was submitted with an inline target. */
  readonly task: string | null;
  /** Counts every attempt of the job, from 1. */
  readonly attempt: number;
  /**
   * Grows with every attempt of the job. Pass it to the systems the handler writes to, so that they can refuse old
   * attempts.
   */
  readonly fence: number;
  /**
   * Aborts when the attempt should end: the job was cancelled, its timeout is over, or a newer attempt owns
   * it. Losing contact with the scheduler for a while does not abort it.
   */
  readonly signal: AbortSignal;
  /**
   * Reports how far the job is, from 0 to 1. Of several calls in quick succession only the last is sent. The promise
   * resolves when the report was sent or has failed; it never rejects because of the network.
   */
  readonly progress: (fraction: number, message?: string) => Promise<void>;
  /** Adds a line to the job's log; also `log.debug`, `log.info`, `log.warn` and `log.error`. */
  readonly log: JobLog;
}

/** Adds lines to a job's log. Values that are not strings are formatted as by `console.log`. */
export interface JobLog {
  (message: unknown): void;
  debug(message: unknown): void;
  info(message: unknown): void;
  warn(message: unknown): void;
  error(message: unknown): void;
}

/** The type of a value after it was written as JSON and read back: a Date is a string, methods are gone. */
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

/** The part of a property's type that JSON keeps; `never` if JSON leaves the property out. */
type Kept<T> = unknown extends T ? T : Exclude<T, undefined | symbol | ((...args: never[]) => unknown)>;

/** Throw this from a handler when a retry cannot help: the job fails at once, however many retries are left. */
export class PermanentError extends Error {
  readonly code: string | undefined;
  readonly retryable = false;

  constructor(message: string, options: { readonly code?: string; readonly cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'PermanentError';
    this.code = options.code;
  }
}
