import type { Duration } from './duration.js';
import { invalid, PunctualError } from './errors.js';
import { type Delivery, type Labels, NAME_PATTERN, NAME_RULE, type RetryInput } from './job.js';
import { checkOptions, type OptionNames } from './known-options.js';
import { checkRetry } from './nested-options.js';
import { fieldErrorsOf, isStandardSchema, type StandardSchema } from './standard-schema.js';
import { checkValues } from './task-values.js';
import type { Spawn } from './workflow/workflow-builder.js';

/** How jobs of a task run unless their submission says otherwise. */
export interface TaskDefaults {
  /** The queue the job waits in; default `default`. */
  readonly queue?: string;
  /** 1 … 9, 9 first; default 5. */
  readonly priority?: number;
  /** How many attempts there are and how long the pauses between them; default 4 attempts, 2 s, 4 s and 8 s apart. */
  readonly retry?: RetryInput;
  /** How long an attempt may run, e.g. `2m`; default and maximum 20 minutes unless the operator changed it. */
  readonly timeout?: Duration;
  /** `at-most-once` starts the job exactly once, whatever happens; default `at-least-once`. */
  readonly delivery?: Delivery;
  /** Labels a worker must have. */
  readonly requires?: Labels;
}

/** The names of what a task may say about its jobs. */
export const TASK_DEFAULTS: OptionNames<TaskDefaults> = {
  queue: true,
  priority: true,
  retry: true,
  timeout: true,
  delivery: true,
  requires: true,
};

/** Options of a task. */
export interface TaskOptions<Input = unknown, Submitted = Input> extends TaskDefaults {
  /** A schema that checks inputs when they are submitted and before they run; the handler gets its output. */
  readonly input?: StandardSchema<Submitted, Input>;
}

const OPTIONS: OptionNames<TaskOptions> = { ...TASK_DEFAULTS, input: true };

/** A function that does the work of a task. */
export type Handler<Input, Result> = (input: Input, context: JobContext) => Result;

/**
 * A task with its handler. `Input` is the type of a submission's input, `Output` the type of a job's result, `Work` the
 * type of the handler.
 */
export interface Task<Input, Output, Work extends Handler<never, unknown> = Handler<never, unknown>> {
  readonly name: string;
  readonly defaults: TaskDefaults;
  readonly schema: StandardSchema | null;
  readonly handler: Work;
  /**
   * Calls the handler as a worker would, without any node: the input passes through JSON and the schema, the result
   * through JSON. For unit tests, with the context that `testContext()` makes.
   */
  run(input: Input, context: JobContext): Promise<Output>;
  /** Never set at run time: tells the compiler the types of input and output. */
  readonly types?: { readonly input: (input: Input) => void; readonly output: Output };
}

/** A task of any input and output. */
export type AnyTask = Task<never, unknown>;

/** Defines a task: its name, how its jobs run by default, and the handler that does the work. */
export function task<Input, Result>(
  name: string,
  handler: Handler<Input, Result>,
): Task<Input, Json<Awaited<Result>>, Handler<Input, Result>>;
// One signature with and without a schema: about a wrong option of two, the compiler would tell what is wrong with the
// signature that was not meant.
export function task<Input, Result, Submitted = Input>(
  name: string,
  options: TaskOptions<Input, Submitted>,
  handler: Handler<Input, Result>,
): Task<Submitted, Json<Awaited<Result>>, Handler<Input, Result>>;
export function task(
  name: string,
  optionsOrHandler: TaskOptions | Handler<never, unknown>,
  maybeHandler?: Handler<never, unknown>,
): AnyTask {
  const options = typeof optionsOrHandler === 'function' ? {} : optionsOrHandler;
  const handler = typeof optionsOrHandler === 'function' ? optionsOrHandler : maybeHandler;
  const { input: schema, ...defaults } = options;
  if (!NAME_PATTERN.test(name)) {
    throw invalid([{ pointer: '/task', detail: `${JSON.stringify(name)} ${NAME_RULE}` }]);
  }
  const of = `task(${JSON.stringify(name)})`;
  checkOptions(of, options, OPTIONS);
  checkRetry(of, options.retry);
  checkValues(of, options);
  if (typeof handler !== 'function') {
    throw new PunctualError('INVALID_REQUEST', `The task ${name} has no handler; pass a function last.`);
  }
  if (schema !== undefined && !isStandardSchema(schema)) {
    throw new PunctualError(
      'INVALID_REQUEST',
      `The input of the task ${name} is not a Standard Schema; pass a schema of zod, valibot, arktype or the like.`,
    );
  }
  const definition: AnyTask = {
    name,
    defaults: Object.freeze(defaults),
    schema: schema ?? null,
    handler,
    run: (input, context) => runHandler(definition, input, context),
  };
  return Object.freeze(definition);
}

async function runHandler(definition: AnyTask, input: unknown, context: JobContext): Promise<unknown> {
  const given = asJson(input);
  // Without a schema the handler starts in the call: a test that aborts the signal next aborts an attempt that runs.
  const checked = definition.schema ? await checkInput(definition, given) : given;
  // As in a worker, an attempt that was stopped before its start does not start. A test may pass a part of a context.
  (context as Partial<JobContext> | undefined)?.signal?.throwIfAborted();
  // The compiler has checked the type of the input; only a schema checks it at run time.
  return asJson(await (definition.handler as Handler<unknown, unknown>)(checked, context));
}

/** A value as it is after its way through JSON; throws if JSON cannot represent it. */
function asJson(value: unknown): unknown {
  if (value === undefined) return null;
  const text = JSON.stringify(value);
  if (text === undefined) {
    throw new PunctualError('INVALID_REQUEST', `JSON cannot represent a ${typeof value}.`);
  }
  return JSON.parse(text);
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
  /** The queue that the job waited in. */
  readonly queue: string;
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
   * The context of the trace that the job is part of (W3C `traceparent`), for calls to other systems; undefined if it is
   * part of none. What the handler submits through the SDK carries it on by itself.
   */
  readonly traceparent?: string | undefined;
  /**
   * Reports how far the job is, from 0 to 1. Of several calls in quick succession only the last is sent. The promise
   * resolves when the report was sent or has failed; it never rejects because of the network.
   */
  readonly progress: (fraction: number, message?: string) => Promise<void>;
  /** The id of the workflow that the job is a step of; undefined if it is none. */
  readonly workflow?: string | undefined;
  /**
   * Adds steps to the workflow of this step: `await ctx.spawn((w) => { w.run(render, { page: 1 }, { name: 'page-1' }); })`.
   * All of them are stored, or none. Who waits for this step waits for them, too, unless `join` is false. Steps that this
   * job has added before under the same names, in this attempt or an earlier one, are taken as they are.
   */
  readonly spawn: Spawn;
  /** Adds a line to the job's log; also `log.debug`, `log.info`, `log.warn` and `log.error`. */
  readonly log: JobLog;
}

/** What a middleware knows about the attempt: what its handler knows, and the payload. */
export interface MiddlewareContext extends JobContext {
  /** The payload as it was submitted; a task with a schema has not checked it yet. */
  readonly payload: unknown;
}

/**
 * A function around the handlers of a worker: for tracing, reporting errors, transactions. `next()` runs the rest and
 * resolves with its result, or rejects with its error; call it once. What the middleware returns is the result of the
 * attempt; if it returns nothing, the result or the error of `next()` is.
 */
export type Middleware = (context: MiddlewareContext, next: () => Promise<unknown>) => unknown;

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
