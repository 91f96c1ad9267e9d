import { parseDuration } from './duration.js';
import { type FieldError, invalid, pointerStep } from './errors.js';
import { type HttpTarget, NAME_PATTERN, NAME_RULE, type SecretReference } from './job.js';
import { checkOptions, type OptionNames } from './known-options.js';
import { isReference } from './workflow/result-reference.js';

/**
 * The rules of http targets that their schema does not say, and how references to secrets are found in them. Free of the
 * schemas, because workers load it too.
 */

/** The most secrets that one target may name. */
export const MAX_SECRETS = 16;

/** How long one call may take if its target does not say. */
export const DEFAULT_CALL_TIMEOUT_MS = 30_000;

/**
 * Headers that a target may not set: those that the call itself sends, because the receiver would find two values, and those
 * that say how the message travels, because another reading of them is how requests are smuggled.
 */
const REFUSED_HEADERS: readonly string[] = [
  'accept-encoding',
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'traceparent',
  'tracestate',
  'trailer',
  'transfer-encoding',
  'upgrade',
];
const REFUSED_PREFIXES: readonly string[] = ['proxy-', 'punctual-', 'webhook-'];

/** The refused headers as a regular expression for names in lower case; Postgres reads it, too. */
export const REFUSED_HEADER = `^(${REFUSED_HEADERS.join('|')}|(${REFUSED_PREFIXES.join('|')}).*)$`;
const REFUSED = new RegExp(REFUSED_HEADER);

/** Whether a target may not set the header, because the call does, or the connection. */
export function isRefusedHeader(name: string): boolean {
  return REFUSED.test(name.toLowerCase());
}

/** Completes "/target/headers/x …". */
export const REFUSED_HEADER_RULE = 'is a header that the call itself sets';

/** HTTP carries the characters of one byte only. */
const IN_ONE_BYTE = /^[\u0020-\u007e\u0080-\u00ff]*$/;
const PREFIX = /^[^\p{Cc}\p{Cs}]{1,128}$/u;

/** The methods of calls without a body. */
export function isWithoutBody(method: string): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** What is wrong with a target whose form is right; pointers count from the target. */
export function mistakesOf(target: HttpTarget): FieldError[] {
  const errors: FieldError[] = [];
  const wrong = (pointer: string, detail: string) => errors.push({ pointer, detail });
  const { username, password } = new URL(target.url);
  if (username !== '' || password !== '') {
    wrong('/url', 'must not contain a user or a password; use a header with a secret instead');
  }
  if (target.body !== undefined && isWithoutBody(target.method ?? 'POST')) {
    wrong('/body', `does not go together with the method ${target.method}`);
  }
  if (target.timeout !== undefined && parseDuration(target.timeout)! < 1) {
    wrong('/timeout', 'must be at least 1ms');
  }
  for (const [name, value] of Object.entries(target.headers ?? {})) {
    const pointer = `/headers${pointerStep(name)}`;
    if (isRefusedHeader(name)) wrong(pointer, REFUSED_HEADER_RULE);
    const text = typeof value === 'string' ? value : (value.prefix ?? '');
    if (!IN_ONE_BYTE.test(text)) wrong(pointer, 'must hold only characters of ISO 8859-1');
  }
  checkReferences(target.body, '/body', wrong);
  if (secretNamesOf(target).length > MAX_SECRETS) {
    wrong('', `must name at most ${MAX_SECRETS} different secrets`);
  }
  return errors;
}

/** Whether a value stands for a secret; one with mistakes counts, so that it is not sent as it is. */
function isMeantAsReference(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, '$secret');
}

function checkReferences(
  value: unknown,
  pointer: string,
  wrong: (pointer: string, detail: string) => void,
): void {
  if (typeof value !== 'object' || value === null || isReference(value)) return;
  if (!isMeantAsReference(value)) {
    for (const [name, child] of Object.entries(value)) {
      if (typeof child === 'object') checkReferences(child, pointer + pointerStep(name), wrong);
    }
    return;
  }
  const { $secret, prefix, ...others } = value;
  if (typeof $secret !== 'string' || !NAME_PATTERN.test($secret)) wrong(`${pointer}/$secret`, NAME_RULE);
  if (prefix !== undefined && (typeof prefix !== 'string' || !PREFIX.test(prefix))) {
    wrong(`${pointer}/prefix`, 'must be text of 1 to 128 characters without control characters');
  }
  if (Object.keys(others).length > 0) {
    wrong(pointer, 'must have no other fields than "$secret", "prefix"');
  }
}

/** The names of the secrets that a target refers to, each once. */
export function secretNamesOf({ headers = {}, body }: HttpTarget): string[] {
  const names = new Set<string>();
  for (const value of Object.values(headers)) if (typeof value !== 'string') names.add(value.$secret);
  collectNames(body, names);
  return [...names];
}

function collectNames(value: unknown, names: Set<string>): void {
  if (typeof value !== 'object' || value === null || isReference(value)) return;
  if (isMeantAsReference(value)) {
    if (typeof value.$secret === 'string') names.add(value.$secret);
    return;
  }
  for (const child of Object.values(value)) if (typeof child === 'object') collectNames(child, names);
}

/** What takes the places of references in a body. */
export interface BodyValues {
  /** The text that takes the place of a secret. */
  readonly secret: (reference: SecretReference) => string;
  /** The same body with results in the places of `$from`; only steps of workflows have one. */
  readonly resolved?: { readonly value: unknown };
}

/**
 * The body with every reference replaced. Secrets are looked for in what the target says, never in what stands for a `$from`:
 * a result that looks like a reference to a secret is sent as it is.
 */
export function filledBody(body: unknown, { secret, resolved }: BodyValues): unknown {
  if (typeof body !== 'object' || body === null) return body;
  if (isMeantAsReference(body)) return secret(body as unknown as SecretReference);
  if (resolved && isFrom(body)) return resolved.value ?? null;
  const childOf = (name: string, child: unknown) =>
    filledBody(child, { secret, ...(resolved && { resolved: { value: memberOf(resolved.value, name) } }) });
  if (Array.isArray(body)) return body.map((child, i) => childOf(String(i), child));
  return Object.fromEntries(Object.entries(body).map(([name, child]) => [name, childOf(name, child)]));
}

/** Whether an object stands for a result of a step, or a part of the input of a workflow. */
function isFrom(value: object): boolean {
  const names = Object.keys(value);
  return names.length === 1 && names[0] === '$from';
}

function memberOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return (value as Readonly<Record<string, unknown>>)[name];
}

/** What a call is, as a program says it: a target without its type. */
export type HttpCall = Omit<HttpTarget, 'type'>;

const CALL: OptionNames<HttpCall> = {
  url: true,
  method: true,
  headers: true,
  body: true,
  expect: true,
  completion: true,
  timeout: true,
  redirects: true,
  retryStatuses: true,
};

/** A call to a URL, in place of a task: `punctual.submit(http({ url: 'https://example.com/hook' }), { id: 7 })`. */
export function http(call: HttpCall): HttpTarget {
  checkOptions('http()', call, CALL);
  if (!URL.canParse(call.url) || !/^https?:$/.test(new URL(call.url).protocol)) {
    throw invalid([{ pointer: '/url', detail: 'must be an http or https URL' }]);
  }
  const target: HttpTarget = { type: 'http', ...call };
  const mistakes = mistakesOf(target);
  if (mistakes.length > 0) throw invalid(mistakes);
  return target;
}
