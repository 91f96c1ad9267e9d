import { formatDuration } from './duration.js';
import { type FieldError, invalid, MOST_ERRORS, PunctualError } from './errors.js';
import { FieldReader, isPlainObject } from './fields.js';
import type { Delivery, Labels, Target, TargetType } from './job.js';
import { JsonText, readJsonText } from './json-reader.js';
import { DEFAULT_BACKOFF, DEFAULT_RETRY, type RetryPolicy } from './retry.js';
import { TimeSlice } from './time-slice.js';

/** From what a user wrote to a job that can be stored: every default filled in, everything checked. */

/** What a worker must have to run the job. Jobs with equal needs share a backlog. */
export interface Needs {
  readonly target: TargetType;
  /** The handler's name; empty for other targets. */
  readonly handler: string;
  readonly labels: Labels;
}

/** All that a submission says but for its payload. The jobs of a bulk that differ in nothing else share one. */
export interface JobDefinition {
  readonly queue: string;
  readonly task: string | null;
  /** Null when the target is the handler that the task names. */
  readonly target: Target | null;
  readonly needs: Needs;
  readonly priority: number;
  readonly runAt: number;
  readonly key: string | null;
  readonly retry: RetryPolicy;
  /** Whether the user left the backoff to the default, which then need not be stored. */
  readonly backoffIsDefault: boolean;
  readonly timeoutMs: number;
  readonly delivery: Delivery;
  readonly concurrencyKey: string | null;
  readonly startBefore: number | null;
  readonly hold: boolean;
}

export interface ParsedSubmission {
  readonly definition: JobDefinition;
  /** The payload as JSON text. */
  readonly payload: string;
}

export interface SubmissionContext {
  /** The moment that `delay` and "now" count from. */
  readonly now: number;
  readonly maxPayload: number;
  readonly jobTimeout: number;
  readonly maxJobTimeout: number;
  readonly maxDepth: number;
}

const FIELDS = [
  'task',
  'target',
  'payload',
  'runAt',
  'delay',
  'queue',
  'priority',
  'key',
  'retry',
  'timeout',
  'delivery',
  'concurrencyKey',
  'requires',
  'startBefore',
  'hold',
];

const HTTP_METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD'] as const;
/** The leader keeps the label sets of waiting jobs in memory. */
const MAX_LABELS_BYTES = 4_096;
const NO_LABELS: Labels = Object.freeze({});

/** Checks one submission; throws INVALID_REQUEST with a pointer to every wrong field. */
export function parseSubmission(input: unknown, context: SubmissionContext, pointer = ''): ParsedSubmission {
  const errors: FieldError[] = [];
  const parsed = readSubmission(input, context, pointer, errors);
  if (!parsed) throw invalid(errors);
  return parsed;
}

/** A submission that stands in the database as text: its payload stays the text that it is. */
export function readSubmissionText(text: string, { maxDepth }: { readonly maxDepth: number }): unknown {
  return readJsonText(Buffer.from(text), { maxDepth, text: 'payload', allowProto: true });
}

/** Checks many; either all are good or the error names what is wrong with each. */
export async function parseSubmissions(
  inputs: readonly unknown[],
  context: SubmissionContext,
): Promise<ParsedSubmission[]> {
  const errors: FieldError[] = [];
  const parsed: ParsedSubmission[] = [];
  const turn = new TimeSlice();
  for (let i = 0; i < inputs.length && errors.length <= MOST_ERRORS; i++) {
    if (i % 16 === 0 && turn.isOver) await turn.next();
    const like = i > 0 && isAlike(inputs[i - 1], inputs[i]) ? parsed[i - 1] : undefined;
    const one = like
      ? withPayload(like, inputs[i], context, i, errors)
      : readSubmission(inputs[i], context, `/jobs/${i}`, errors);
    if (one) parsed.push(one);
  }
  if (errors.length > 0) throw invalid(errors);
  return parsed;
}

/** Whether two submissions differ in nothing but their payloads, as those of a bulk mostly do. */
function isAlike(a: unknown, b: unknown): boolean {
  if (!isPlainObject(a) || !isPlainObject(b)) return false;
  let names = 0;
  for (const name in b) {
    names += 1;
    if (!Object.hasOwn(b, name)) return false;
    if (name === 'payload' ? !Object.hasOwn(a, name) : a[name] !== b[name]) return false;
  }
  for (const _ in a) names -= 1;
  return names === 0;
}

function withPayload(
  like: ParsedSubmission,
  input: unknown,
  context: SubmissionContext,
  place: number,
  errors: FieldError[],
): ParsedSubmission | null {
  const { payload } = input as { payload?: unknown };
  const before = errors.length;
  const text = readJson(payload, context, (detail, code) => {
    const pointer = `/jobs/${place}/payload`;
    if (code === 'INVALID_REQUEST') errors.push({ pointer, detail });
    else throw new PunctualError(code, `${pointer}: ${detail}`, { errors: [{ pointer, detail }] });
  });
  return errors.length > before ? null : { definition: like.definition, payload: text ?? 'null' };
}

function readSubmission(
  input: unknown,
  context: SubmissionContext,
  pointer: string,
  errors: FieldError[],
): ParsedSubmission | null {
  const before = errors.length;
  const fields = new FieldReader(input, pointer, FIELDS, errors);
  const task = fields.name('task');
  const target = readTarget(fields, context);
  if (isPlainObject(input) && fields.has('task') === fields.has('target')) {
    fields.wrong('task', 'give either "task" or "target"');
  }
  const labels = fields.texts('requires', 32, 256) ?? NO_LABELS;
  if (labels !== NO_LABELS && Buffer.byteLength(JSON.stringify(labels)) > MAX_LABELS_BYTES)
    fields.wrong('requires', `must be at most ${MAX_LABELS_BYTES} bytes in all`);
  const delivery = fields.oneOf<Delivery>('delivery', ['at-least-once', 'at-most-once']) ?? 'at-least-once';
  const retry = readRetry(fields, delivery);
  const payload = readJsonField(fields, 'payload', context) ?? 'null';
  const definition = {
    queue: fields.name('queue') ?? 'default',
    task: task ?? null,
    target: target?.type === 'handler' && task === undefined ? target : (target ?? null),
    needs: needsOf(task, target, labels),
    priority: fields.integer('priority', 1, 9) ?? 5,
    runAt: readRunAt(fields, context.now),
    key: fields.text('key', 512) ?? null,
    retry,
    backoffIsDefault: retry.backoff === DEFAULT_BACKOFF,
    timeoutMs: readTimeout(fields, context),
    delivery,
    concurrencyKey: fields.text('concurrencyKey', 512) ?? null,
    startBefore: fields.moment('startBefore') ?? null,
    hold: fields.boolean('hold') ?? false,
  };
  if (definition.startBefore !== null && definition.startBefore <= definition.runAt) {
    fields.wrong('startBefore', 'must lie after the time the job is due');
  }
  return errors.length > before ? null : { definition, payload };
}

function needsOf(task: string | undefined, target: Target | undefined, labels: Labels): Needs {
  if (!target) return { target: 'handler', handler: task ?? '', labels };
  return { target: target.type, handler: target.type === 'handler' ? target.name : '', labels };
}

function readRunAt(fields: FieldReader, now: number): number {
  if (fields.has('runAt') && fields.has('delay')) fields.wrong('delay', 'give either "runAt" or "delay"');
  const delay = fields.duration('delay');
  const runAt = fields.moment('runAt');
  if (delay !== undefined) return now + delay;
  // A due time in the past means now: the job cannot be late for a moment before it was submitted.
  return Math.max(runAt ?? now, now);
}

function readTimeout(fields: FieldReader, context: SubmissionContext): number {
  const timeout = fields.duration('timeout') ?? Math.min(context.jobTimeout, context.maxJobTimeout);
  if (timeout < 1) fields.wrong('timeout', 'must be at least 1ms');
  if (timeout > context.maxJobTimeout) {
    fields.wrong('timeout', `must be at most ${formatDuration(context.maxJobTimeout)}`);
  }
  return timeout;
}

function readRetry(fields: FieldReader, delivery: Delivery): RetryPolicy {
  const once = delivery === 'at-most-once';
  const retry = fields.nested('retry', ['maxAttempts', 'backoff', 'onWorkerLost']);
  if (!retry)
    return once ? { ...DEFAULT_RETRY, maxAttempts: 1, onWorkerLost: { maxAttempts: 1 } } : DEFAULT_RETRY;
  const backoff = retry.nested('backoff', ['base', 'factor', 'max', 'jitter']);
  const lost = retry.nested('onWorkerLost', ['maxAttempts']);
  const maxAttempts = retry.integer('maxAttempts', 1, 1_000);
  const maxLost = lost?.integer('maxAttempts', 1, 1_000);
  if (once && (maxAttempts ?? 1) > 1) {
    retry.wrong('maxAttempts', 'an at-most-once job is started exactly once, so this must be 1');
  }
  if (once && (maxLost ?? 1) > 1) {
    lost!.wrong('maxAttempts', 'an at-most-once job is started exactly once, so this must be 1');
  }
  return {
    maxAttempts: maxAttempts ?? (once ? 1 : DEFAULT_RETRY.maxAttempts),
    backoff: backoff
      ? {
          baseMs: backoff.duration('base') ?? DEFAULT_BACKOFF.baseMs,
          factor: backoff.number('factor', 1, 100) ?? DEFAULT_BACKOFF.factor,
          maxMs: backoff.duration('max') ?? DEFAULT_BACKOFF.maxMs,
          jitter: backoff.number('jitter', 0, 1) ?? DEFAULT_BACKOFF.jitter,
        }
      : DEFAULT_BACKOFF,
    onWorkerLost: { maxAttempts: maxLost ?? (once ? 1 : DEFAULT_RETRY.onWorkerLost.maxAttempts) },
  };
}

/** JSON text of a field, or null after saying what is wrong; one that is too large is refused at once. */
function readJsonField(fields: FieldReader, name: string, context: SubmissionContext): string | null {
  return readJson(fields.raw(name), context, (detail, code) => {
    if (code === 'INVALID_REQUEST') {
      fields.wrong(name, detail);
      return;
    }
    const pointer = fields.pointerTo(name);
    throw new PunctualError(code, `${pointer}: ${detail}`, { errors: [{ pointer, detail }] });
  });
}

/** JSON text of a value within size and depth, or null after saying what is wrong. */
export function readJson(
  value: unknown,
  limits: Pick<SubmissionContext, 'maxPayload' | 'maxDepth'>,
  wrong: (detail: string, code: 'INVALID_REQUEST' | 'PAYLOAD_TOO_LARGE') => void,
): string | null {
  if (value === undefined || value === null) return 'null';
  if (value instanceof JsonText) {
    if (value.bytes <= limits.maxPayload) return value.text;
    wrong(`must be at most ${limits.maxPayload} bytes as JSON`, 'PAYLOAD_TOO_LARGE');
    return null;
  }
  if (isTooDeep(value, limits.maxDepth)) {
    wrong(`must not be nested deeper than ${limits.maxDepth} levels`, 'INVALID_REQUEST');
    return null;
  }
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    wrong(`cannot be written as JSON: ${(error as Error).message}`, 'INVALID_REQUEST');
    return null;
  }
  if (text === undefined) {
    wrong('cannot be written as JSON', 'INVALID_REQUEST');
    return null;
  }
  if (text.length > limits.maxPayload || Buffer.byteLength(text) > limits.maxPayload) {
    wrong(`must be at most ${limits.maxPayload} bytes as JSON`, 'PAYLOAD_TOO_LARGE');
    return null;
  }
  return text;
}

/** Postgres parses JSON recursively: nesting beyond a bound would fail there, for the whole batch. */
function isTooDeep(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (levels === 0) return true;
  for (const child of Array.isArray(value) ? value : Object.values(value)) {
    if (typeof child === 'object' && child !== null && isTooDeep(child, levels - 1)) return true;
  }
  return false;
}

function readTarget(fields: FieldReader, context: SubmissionContext): Target | undefined {
  if (!fields.has('target')) return undefined;
  if (readJsonField(fields, 'target', context) === null) return undefined;
  const type = isPlainObject(fields.raw('target'))
    ? (fields.raw('target') as { type?: unknown }).type
    : undefined;
  if (type === 'http') return readHttpTarget(fields);
  if (type === 'exec') return readExecTarget(fields);
  const target = fields.nested('target', ['type', 'name'])!;
  target.require('type', 'name');
  target.oneOf('type', ['handler', 'http', 'exec']);
  return { type: 'handler', name: target.name('name') ?? '' };
}

function readHttpTarget(fields: FieldReader): Target {
  const target = fields.nested('target', ['type', 'url', 'method', 'headers', 'body'])!;
  target.require('url');
  const url = target.text('url', 8_192);
  if (url && !/^https?:$/.test(URL.canParse(url) ? new URL(url).protocol : '')) {
    target.wrong('url', 'must be an http or https URL');
  }
  const method = target.oneOf('method', HTTP_METHODS);
  const headers = target.texts('headers', 64, 8_192);
  return {
    type: 'http',
    url: url ?? '',
    ...(method && { method }),
    ...(headers && { headers }),
    ...(target.has('body') && { body: target.raw('body') }),
  };
}

function readExecTarget(fields: FieldReader): Target {
  const target = fields.nested('target', ['type', 'artifact', 'command', 'args', 'env'])!;
  const artifact = target.text('artifact', 256);
  const command = target.text('command', 4_096);
  if (target.has('artifact') === target.has('command')) {
    target.wrong('artifact', 'give either "artifact" or "command"');
  }
  const args = target.raw('args');
  const argsFit =
    args === undefined ||
    (Array.isArray(args) &&
      args.length <= 256 &&
      args.every((arg) => typeof arg === 'string' && !arg.includes('\0')));
  if (!argsFit) target.wrong('args', 'must be at most 256 texts');
  const env = target.texts('env', 128, 32_768);
  return {
    type: 'exec',
    ...(artifact && { artifact }),
    ...(command && { command }),
    ...(args !== undefined && { args: args as string[] }),
    ...(env && { env }),
  };
}
