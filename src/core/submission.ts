import type { AwaitedArtifact } from './artifact.js';
import { environmentName } from './config.js';
import { formatDuration, parseDuration } from './duration.js';
import { type FieldError, invalid, MOST_ERRORS, PunctualError } from './errors.js';
import { mistakesInProgram } from './exec-target.js';
import { mistakesOf } from './http-target.js';
import {
  type Delivery,
  type JobSubmission,
  type Labels,
  NAME_PATTERN,
  type RetryInput,
  type Target,
  type TargetType,
} from './job.js';
import { JsonText, readJsonText } from './json-reader.js';
import { hasWindow, KEEP, type KeyRule } from './keys.js';
import { parseMoment } from './moment.js';
import { originOfUrl } from './origin.js';
import { type Backoff, DEFAULT_BACKOFF, DEFAULT_RETRY, type RetryPolicy } from './retry.js';
import { isPlainObject } from './schemas/explain.js';
import { JobSubmission as Form } from './schemas/submission.js';
import { readFields } from './schemas/validate.js';
import {
  checkPayload,
  keyInPayload,
  originOf,
  readsPayloads,
  type TaskLookup,
  type TaskRules,
  withTaskDefaults,
} from './task-defaults.js';
import { TimeSlice } from './time-slice.js';

/**
 * From what a user wrote to a job that can be stored. The schema that the documentation shows checks the form; here are
 * the rules between fields, the limits that an operator sets, and the defaults.
 */

/** What a worker must have to run the job. Jobs with equal needs share a backlog. */
export interface Needs {
  readonly target: TargetType;
  /** The handler's name; empty for other targets. */
  readonly handler: string;
  readonly labels: Labels;
}

/** All that a submission says but for its payload. The jobs of a bulk that differ in nothing else share one. */
export interface JobDefinition {
  /** The moment that its times count from: when it was submitted. */
  readonly at: number;
  readonly queue: string;
  readonly task: string | null;
  /** Null when the target is the handler that the task names. */
  readonly target: Target | null;
  readonly needs: Needs;
  readonly priority: number;
  readonly runAt: number;
  readonly key: string | null;
  readonly keyRule: KeyRule;
  readonly retry: RetryPolicy;
  /** Whether the user left the backoff to the default, which then need not be stored. */
  readonly backoffIsDefault: boolean;
  readonly timeoutMs: number;
  readonly delivery: Delivery;
  readonly concurrencyKey: string | null;
  readonly startBefore: number | null;
  readonly hold: boolean;
  /** The artifact that it has to wait for, once the name in its target is resolved. */
  readonly awaits?: AwaitedArtifact;
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
  /** Whether targets may name commands of the workers' machines. */
  readonly allowCommands: boolean;
  /** The definitions of the tasks that the submissions name; default none. */
  readonly tasks?: TaskLookup;
  /** Whether the payload will be completed later, and is checked then. */
  readonly hasOpenPayload?: boolean;
  /** How many workflows are around the one whose steps are read; default none. */
  readonly depth?: number;
}

/** How long the JSON of labels may be: the leader keeps the label sets of waiting jobs in memory. */
export const MAX_LABELS_BYTES = 4_096;
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

/** When the job of a submission that is not valid would have been due, as far as its fields say. */
export function dueTimeOf(input: unknown, now: number): number {
  const fields = readFields(Form, input, '', []) ?? {};
  return readRunAt(fields, {}, KEEP, now, { pointer: '', errors: [] });
}

/** The tasks that unchecked submissions name, each once. What cannot be a name has no definition. */
export function taskNamesOf(inputs: readonly unknown[]): string[] {
  const names = new Set<string>();
  let last: unknown;
  for (const input of inputs) {
    const task = isPlainObject(input) ? input.task : undefined;
    if (task === last) continue;
    last = task;
    if (typeof task === 'string' && NAME_PATTERN.test(task)) names.add(task);
  }
  return [...names];
}

/** Where the submissions of a list stand in the request, and which payloads are not complete yet. */
interface ListPlace {
  readonly pointerOf: (index: number) => string;
  /** Whether the payload becomes what it will be only later; then it is checked then. */
  readonly isOpen?: (index: number) => boolean;
}

const IN_BULK: ListPlace = { pointerOf: (index) => `/jobs/${index}` };

/** Checks many; either all are good or the error names what is wrong with each. */
export async function parseSubmissions(
  inputs: readonly unknown[],
  given: SubmissionContext,
  { pointerOf, isOpen }: ListPlace = IN_BULK,
): Promise<ParsedSubmission[]> {
  const open = { ...given, hasOpenPayload: true };
  const errors: FieldError[] = [];
  const parsed: ParsedSubmission[] = [];
  const turn = new TimeSlice();
  // A definition may have each payload parsed and checked, which takes longer than all else.
  const lookEvery = given.tasks && given.tasks.size > 0 ? 1 : 16;
  let place = 0;
  // One for all submissions: making one for each would cost more than most of what else is done for it.
  const pointer = () => `${pointerOf(place)}/payload`;
  const wrong: SayWrong = (detail, code) => addWrongJson(errors, pointer(), detail, code);
  const payloadPlace = { pointer, wrong, errors };
  for (let i = 0; i < inputs.length && errors.length <= MOST_ERRORS; i++) {
    if (i % lookEvery === 0 && turn.isOver) await turn.next();
    place = i;
    const context = isOpen?.(i) ? open : given;
    const like = i > 0 && isAlike(inputs[i - 1], inputs[i]) ? parsed[i - 1] : undefined;
    const one = like
      ? withPayload(like, inputs[i], context, payloadPlace)
      : readSubmission(inputs[i], context, pointerOf(i), errors);
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

/** Where the payload stands that is being read, and what was found wrong. */
interface PayloadPlace {
  readonly pointer: () => string;
  readonly wrong: SayWrong;
  readonly errors: FieldError[];
}

function withPayload(
  like: ParsedSubmission,
  input: unknown,
  context: SubmissionContext,
  { pointer: pointerOf, wrong, errors }: PayloadPlace,
): ParsedSubmission | null {
  const { payload, concurrencyKey } = input as Given;
  const { definition } = like;
  const text = readJson(payload, context, wrong);
  if (text === null) return null;
  const rules = rulesOf(definition.task, context);
  if (!rules || !readsPayloads(rules) || context.hasOpenPayload) return { definition, payload: text };
  const pointer = pointerOf();
  const before = errors.length;
  const value = checkPayload(rules, text, pointer, errors);
  const isKeyed = rules.keyPath !== null && concurrencyKey === undefined;
  const key = isKeyed ? keyInPayload(rules, value, pointer, errors) : definition.concurrencyKey;
  if (errors.length > before) return null;
  const isSame = key === definition.concurrencyKey;
  return { definition: isSame ? definition : { ...definition, concurrencyKey: key }, payload: text };
}

/** The definition of a submission's task, if it has one. */
function rulesOf(task: string | null | undefined, { tasks }: SubmissionContext): TaskRules | undefined {
  return tasks === undefined || task === null || task === undefined ? undefined : tasks.get(task);
}

function readSubmission(
  input: unknown,
  context: SubmissionContext,
  pointer: string,
  errors: FieldError[],
): ParsedSubmission | null {
  const before = errors.length;
  const fields = readFields(Form, input, pointer, errors);
  const parsed = fields && completeSubmission(fields, input as Given, context, { pointer, errors });
  return errors.length > before ? null : parsed;
}

/** Where a submission stands in the input, and what was found wrong with the input. */
interface Place {
  readonly pointer: string;
  readonly errors: FieldError[];
  /** What the submission itself says, and its task, if that is defined. */
  readonly given?: Given;
  readonly rules?: TaskRules;
}

/** What was given for each field, whether it has the right form or not. */
type Given = { readonly [K in keyof JobSubmission]?: unknown };

/** Notes a mistake, and which of the values that lead to it come from the task. */
function wrong(place: Place, at: string, detail: string, ...causes: readonly string[]): void {
  const { pointer, errors, given, rules } = place;
  const origins = rules ? [at, ...causes].map((each) => originOf(each, given, rules)) : [];
  errors.push({ pointer: pointer + at, detail: detail + origins.join('') });
}

/**
 * Checks the rules between fields whose form is right, and fills in the defaults. A field whose form is wrong is given
 * all the same: nobody who gave a wrong `task` is told to give one.
 */
export function completeSubmission(
  said: JobSubmission,
  given: Given,
  context: SubmissionContext,
  saidAt: Place,
): ParsedSubmission {
  const rules = rulesOf(said.task, context);
  const fields = rules ? withTaskDefaults(said, rules) : said;
  const place = rules ? { ...saidAt, given, rules } : saidAt;
  const { task, delivery = 'at-least-once', requires = NO_LABELS } = fields;
  if ((given.task === undefined) === (given.target === undefined)) {
    wrong(place, '/task', 'give either "task" or "target"');
  }
  const target = readTarget(fields.target, given.target, context, place) ?? rules?.definition.target;
  if (requires !== NO_LABELS && Buffer.byteLength(JSON.stringify(requires)) > MAX_LABELS_BYTES) {
    wrong(place, '/requires', `must be at most ${MAX_LABELS_BYTES} bytes in all`);
  }
  const retry = readRetry(fields.retry, delivery, place);
  const payload = readJsonAt('/payload', given.payload, context, place);
  const concurrencyKey = context.hasOpenPayload
    ? keyWithoutPayload(said.concurrencyKey, rules)
    : readConcurrencyKey(said.concurrencyKey, payload, place);
  const keyRule = readKeyRule(fields, given, place);
  const runAt = readRunAt(fields, given, keyRule, context.now, place);
  const startBefore = fields.startBefore === undefined ? null : parseMoment(fields.startBefore)!;
  if (startBefore !== null && startBefore <= runAt) {
    wrong(place, '/startBefore', 'must lie after the time the job is due');
  }
  const definition = {
    at: context.now,
    queue: fields.queue ?? 'default',
    task: task ?? null,
    target: target ?? null,
    needs: needsOf(task, target, requires),
    priority: fields.priority ?? 5,
    runAt,
    key: fields.key ?? null,
    keyRule,
    retry,
    backoffIsDefault: retry.backoff === DEFAULT_BACKOFF,
    timeoutMs: readTimeout(fields.timeout, context, place),
    delivery,
    concurrencyKey,
    startBefore,
    hold: fields.hold ?? false,
  };
  if (target && place.errors.length === 0) refuseCommand(target, context, place.pointer);
  return { definition, payload: payload ?? 'null' };
}

/** Checks the payload by the rules of its task, and tells the key: that of the submission, else that of the task. */
function readConcurrencyKey(said: string | undefined, payload: string | null, place: Place): string | null {
  const { rules, errors } = place;
  if (!rules) return said ?? null;
  const pointer = `${place.pointer}/payload`;
  const isRead = payload !== null && readsPayloads(rules);
  const value = isRead ? checkPayload(rules, payload, pointer, errors) : null;
  if (said !== undefined) return said;
  const { concurrencyKey } = rules.definition;
  return typeof concurrencyKey === 'string' ? concurrencyKey : keyInPayload(rules, value, pointer, errors);
}

/** The key of a job whose payload is not complete yet: one that the task takes from payloads is not known. */
function keyWithoutPayload(said: string | undefined, rules: TaskRules | undefined): string | null {
  const ofTask = rules?.definition.concurrencyKey;
  return said ?? (typeof ofTask === 'string' ? ofTask : null);
}

/** What a worker must have to run a job. */
export function needsOf(task: string | undefined, target: Target | undefined, labels: Labels): Needs {
  if (!target) return { target: 'handler', handler: task ?? '', labels };
  return { target: target.type, handler: handlerIn(target), labels };
}

/** What stands in the place of the handler: for calls the origin, so that each has a backlog of its own. */
function handlerIn(target: Target): string {
  if (target.type === 'handler') return target.name;
  return target.type === 'http' ? originOfUrl(target.url) : '';
}

function readKeyRule({ keyMode, keyWindow }: JobSubmission, given: Given, place: Place): KeyRule {
  if (given.keyMode !== undefined && given.key === undefined) wrong(place, '/keyMode', 'needs a "key"');
  if (keyMode === undefined || !hasWindow(keyMode)) {
    // Nothing is said about the window of a mode that is no mode.
    if (given.keyWindow !== undefined && given.keyMode === keyMode) {
      wrong(place, '/keyWindow', 'belongs to the modes "debounce" and "throttle" of "keyMode"');
    }
    return keyMode === undefined || keyMode === 'keep' ? KEEP : { mode: keyMode, windowMs: 0 };
  }
  const windowMs = keyWindow === undefined ? null : parseDuration(keyWindow)!;
  if (given.keyWindow === undefined) wrong(place, '/keyWindow', `is needed with the mode "${keyMode}"`);
  if (windowMs === 0) wrong(place, '/keyWindow', 'must be at least 1ms');
  return { mode: keyMode, windowMs: windowMs ?? 0 };
}

function readRunAt(
  { runAt, delay }: JobSubmission,
  given: Given,
  { mode, windowMs }: KeyRule,
  now: number,
  place: Place,
): number {
  if (mode === 'debounce') {
    for (const time of ['runAt', 'delay'] as const) {
      if (given[time] !== undefined)
        wrong(place, `/${time}`, 'is given by "keyWindow" with the mode "debounce"');
    }
    return now + windowMs;
  }
  if (given.runAt !== undefined && given.delay !== undefined) {
    wrong(place, '/delay', 'give either "runAt" or "delay"');
  }
  if (delay !== undefined) return now + parseDuration(delay)!;
  // A due time in the past means now: the job cannot be late for a moment before it was submitted.
  return runAt === undefined ? now : Math.max(parseMoment(runAt)!, now);
}

function readTimeout(given: string | undefined, context: SubmissionContext, place: Place): number {
  const { jobTimeout, maxJobTimeout } = context;
  // A limit that the operator has lowered since the task was defined does not refuse its jobs.
  const isOfTask = place.rules !== undefined && place.given?.timeout === undefined;
  const asked = given === undefined ? jobTimeout : parseDuration(given)!;
  const timeout = given === undefined || isOfTask ? Math.min(asked, maxJobTimeout) : asked;
  if (timeout < 1) wrong(place, '/timeout', 'must be at least 1ms');
  if (timeout > maxJobTimeout) {
    const limit = formatDuration(maxJobTimeout);
    const setting = environmentName('maxJobTimeout');
    wrong(place, '/timeout', `must be at most ${limit}, the limit that ${setting} sets on the nodes`);
  }
  return timeout;
}

const RETRY_ONCE: RetryPolicy = { ...DEFAULT_RETRY, maxAttempts: 1, onWorkerLost: { maxAttempts: 1 } };

function readRetry(given: RetryInput | undefined, delivery: Delivery, place: Place): RetryPolicy {
  const defaults = delivery === 'at-most-once' ? RETRY_ONCE : DEFAULT_RETRY;
  if (!given) return defaults;
  const maxAttempts = given.maxAttempts ?? defaults.maxAttempts;
  const maxLost = given.onWorkerLost?.maxAttempts ?? defaults.onWorkerLost.maxAttempts;
  if (delivery === 'at-most-once') {
    const detail = 'an at-most-once job is started exactly once, so this must be 1';
    if (maxAttempts > 1) wrong(place, '/retry/maxAttempts', detail, '/delivery');
    if (maxLost > 1) wrong(place, '/retry/onWorkerLost/maxAttempts', detail, '/delivery');
  }
  return { maxAttempts, backoff: readBackoff(given.backoff), onWorkerLost: { maxAttempts: maxLost } };
}

function readBackoff(given: RetryInput['backoff']): Backoff {
  if (!given) return DEFAULT_BACKOFF;
  const { base, max, factor = DEFAULT_BACKOFF.factor, jitter = DEFAULT_BACKOFF.jitter } = given;
  return {
    baseMs: base === undefined ? DEFAULT_BACKOFF.baseMs : parseDuration(base)!,
    factor,
    maxMs: max === undefined ? DEFAULT_BACKOFF.maxMs : parseDuration(max)!,
    jitter,
  };
}

/** A target is kept in every job, and so it is bounded like a payload, whatever it is. */
function readTarget(
  target: Target | undefined,
  given: unknown,
  context: SubmissionContext,
  place: Place,
): Target | undefined {
  const text = given === undefined ? null : readJsonAt('/target', given, context, place);
  // What cannot be written as JSON may be a circle.
  if (target && text !== null) {
    for (const { pointer, detail } of mistakesIn(target)) wrong(place, `/target${pointer}`, detail);
  }
  return target;
}

function mistakesIn(target: Target): FieldError[] {
  if (target.type === 'http') return mistakesOf(target);
  return target.type === 'exec' ? mistakesInProgram(target) : [];
}

/** Completes "/target/command …" where commands are not allowed. */
export const REFUSED_COMMAND = `is not allowed here: upload the program as an artifact, or set ${environmentName('allowCommands')} on nodes and workers`;

function refuseCommand(target: Target, { allowCommands }: SubmissionContext, pointer: string): void {
  if (allowCommands || target.type !== 'exec' || target.command === undefined) return;
  const error = { pointer: `${pointer}/target/command`, detail: REFUSED_COMMAND };
  throw new PunctualError('TARGET_UNAVAILABLE', `${error.pointer} ${error.detail}`, { errors: [error] });
}

/** JSON text of a payload on its own; throws INVALID_REQUEST or PAYLOAD_TOO_LARGE. */
export function parsePayload(payload: unknown, limits: JsonLimits): string {
  const errors: FieldError[] = [];
  const text = readJsonAt('/payload', payload, limits, { pointer: '', errors });
  if (text === null) throw invalid(errors);
  return text;
}

/** JSON text of a field, or null after saying what is wrong; one that is too large is refused at once. */
function readJsonAt(at: string, value: unknown, limits: JsonLimits, place: Place): string | null {
  return readJson(value, limits, (detail, code) =>
    addWrongJson(place.errors, place.pointer + at, detail, code),
  );
}

function addWrongJson(errors: FieldError[], pointer: string, detail: string, code: WrongJson): void {
  if (code === 'INVALID_REQUEST') errors.push({ pointer, detail });
  else throw new PunctualError(code, `${pointer}: ${detail}`, { errors: [{ pointer, detail }] });
}

/** Throws if a payload is too large. */
export function mustFit(payload: JsonText, limits: JsonLimits, pointer: string): void {
  readJson(payload, limits, (detail, code) => addWrongJson([], pointer, detail, code));
}

type JsonLimits = Pick<SubmissionContext, 'maxPayload' | 'maxDepth'>;
type WrongJson = 'INVALID_REQUEST' | 'PAYLOAD_TOO_LARGE';
type SayWrong = (detail: string, code: WrongJson) => void;

/** JSON text of a value within size and depth, or null after saying what is wrong. */
export function readJson(value: unknown, limits: JsonLimits, wrong: SayWrong): string | null {
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
  if (Array.isArray(value)) return value.some((child) => isTooDeep(child, levels - 1));
  for (const name in value) {
    const child: unknown = (value as Record<string, unknown>)[name];
    // Inherited properties are not written as JSON.
    if (typeof child === 'object' && Object.hasOwn(value, name) && isTooDeep(child, levels - 1)) return true;
  }
  return false;
}
