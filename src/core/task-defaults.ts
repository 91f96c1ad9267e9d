import { type FieldError, pointerStep } from './errors.js';
import type { JobTemplate, RetryInput } from './job.js';
import type { PayloadSchema } from './payload-schema.js';
import { isPlainObject } from './schemas/explain.js';
import { line } from './schemas/text.js';
import type { TaskDefinition } from './task-definition.js';

/**
 * How a task's definition applies to a submission of one of its jobs: what the submission says comes first, then what
 * the task says, then the defaults of the product. Rules between fields hold for the result.
 */

/** A stored definition, ready to be applied. */
export interface TaskRules {
  readonly name: string;
  readonly definition: TaskDefinition;
  /** The steps to the concurrency key in the payload; null if that is not in the payload. */
  readonly keyPath: readonly string[] | null;
  readonly payloadSchema: Pick<PayloadSchema, 'check'> | null;
}

/** The defined tasks of a tenant, as far as the submissions at hand name them. */
export type TaskLookup = ReadonlyMap<string, TaskRules>;

/** Of a tenant without definitions. */
export const NO_TASKS: TaskLookup = new Map();

/** The fields of a submission over those of its task. A retry is merged by its parts; everything else is one value. */
export function withTaskDefaults<F extends JobTemplate>(fields: F, { definition }: TaskRules): F {
  const { queue, priority, retry, timeout, delivery, requires } = definition;
  const defaults = { queue, priority, timeout, delivery, requires };
  const merged = { ...defaults, ...withoutUndefined(fields) };
  return retry ? { ...merged, retry: mergeRetry(fields.retry, retry) } : merged;
}

function mergeRetry(given: RetryInput | undefined, retry: RetryInput): RetryInput {
  if (!given) return retry;
  return {
    ...retry,
    ...withoutUndefined(given),
    ...(retry.backoff && { backoff: { ...retry.backoff, ...withoutUndefined(given.backoff ?? {}) } }),
    ...(retry.onWorkerLost && {
      onWorkerLost: { ...retry.onWorkerLost, ...withoutUndefined(given.onWorkerLost ?? {}) },
    }),
  };
}

/** A program that embeds a node may say `undefined` for what it leaves open. */
function withoutUndefined<T extends object>(fields: T): T {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;
}

/** Says where a value comes from that the submission itself does not give; empty if it does. */
export function originOf(pointer: string, given: unknown, { name, definition }: TaskRules): string {
  if (valueAt(given, pointer) !== undefined) return '';
  const value = valueAt(definition, pointer);
  return value === undefined ? '' : ` (${JSON.stringify(value)} comes from the task ${name})`;
}

function valueAt(value: unknown, pointer: string): unknown {
  let found = value;
  for (const step of pointer.split('/').slice(1)) found = isPlainObject(found) ? found[step] : undefined;
  return found;
}

/** Whether the payloads of its jobs must be parsed, which all others are not. */
export function readsPayloads({ keyPath, payloadSchema }: TaskRules): boolean {
  return keyPath !== null || payloadSchema !== null;
}

/** The tasks without what depends on payloads, for a look at a job whose payload is left out. */
export function withoutPayloadRules(tasks: TaskLookup): TaskLookup {
  if (tasks.size === 0) return tasks;
  return new Map([...tasks].map(([name, rules]) => [name, { ...rules, keyPath: null, payloadSchema: null }]));
}

/** What the concurrency key of a submission may be. */
const KEY_FORM = new RegExp((line(512) as { pattern?: string }).pattern!, 'u');

/** Checks a payload against the schema of its task; answers with its value. */
export function checkPayload(
  { payloadSchema }: TaskRules,
  payload: string,
  pointer: string,
  errors: FieldError[],
): unknown {
  const value: unknown = JSON.parse(payload);
  payloadSchema?.check(value, pointer, errors);
  return value;
}

/**
 * The concurrency key that stands in a payload. There is none where the path leads to nothing, to null, to an empty text,
 * to an object or to a list.
 */
export function keyInPayload(
  { name, keyPath }: TaskRules,
  payload: unknown,
  pointer: string,
  errors: FieldError[],
): string | null {
  const key = keyPath && stepInto(payload, keyPath);
  if (key === null || KEY_FORM.test(key)) return key;
  const detail = `must be text of 1 to 512 characters without control characters, because the task ${name} takes its concurrency key from it`;
  errors.push({ pointer: pointer + keyPath!.map(pointerStep).join(''), detail });
  return null;
}

function stepInto(value: unknown, path: readonly string[]): string | null {
  let found = value;
  for (const step of path) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, step)) return null;
    if (Array.isArray(found) && step === 'length') return null;
    found = (found as Readonly<Record<string, unknown>>)[step];
  }
  if (typeof found === 'string') return found === '' ? null : found;
  return typeof found === 'number' || typeof found === 'boolean' ? String(found) : null;
}
