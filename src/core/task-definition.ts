import type { Duration } from './duration.js';
import type { Delivery, Labels, RetryInput, Target } from './job.js';

/** The words of a task's definition: what people write about one, in the shape of the schema that checks it. */

/** Where the concurrency key of a task's jobs stands in their payloads. */
export interface KeyPath {
  /** The steps to the value, with dots between them: `customer.id`, `items.0.id`. */
  readonly path: string;
}

/** How the jobs of a task run unless their submission says otherwise, apart from the task's name. */
export interface TaskDefinition {
  readonly description?: string;
  /** Where the work happens; default the handler that the task names. */
  readonly target?: Target;
  /** Default `default`. */
  readonly queue?: string;
  /** 1 … 9, 9 first; default 5. */
  readonly priority?: number;
  readonly retry?: RetryInput;
  /** How long an attempt may run. */
  readonly timeout?: Duration;
  readonly delivery?: Delivery;
  /** Labels a worker must have. */
  readonly requires?: Labels;
  /** The key itself, or where it stands in the payload. */
  readonly concurrencyKey?: string | KeyPath;
  /** A JSON Schema that the payload of every job must fit. */
  readonly payloadSchema?: unknown;
}

/** Everything that a definition may hold, in the order in which it is stored. */
export const TASK_FIELDS = [
  'description',
  'target',
  'queue',
  'priority',
  'retry',
  'timeout',
  'delivery',
  'requires',
  'concurrencyKey',
  'payloadSchema',
] as const satisfies readonly (keyof TaskDefinition)[];

/** The largest definition as JSON, in bytes: nodes keep definitions in memory. */
export const MAX_TASK_BYTES = 64 * 1024;

/** The definition with its fields in one order and without those that are left open, so that texts can be compared. */
export function normaliseTask(fields: { readonly [K in keyof TaskDefinition]?: unknown }): TaskDefinition {
  return Object.fromEntries(
    TASK_FIELDS.filter((name) => fields[name] !== undefined && fields[name] !== null).map((name) => [
      name,
      fields[name],
    ]),
  );
}
