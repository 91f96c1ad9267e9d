import { randomFillSync } from 'node:crypto';
import { filledBody, isWithoutBody } from '../../../core/http-target.js';
import type { HttpTarget, SecretReference } from '../../../core/job.js';
import { TRACEPARENT } from '../../../core/trace-context.js';
import { VERSION } from '../../../core/version.js';
import { signWebhook, WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP } from '../../../core/webhook.js';
import type { Assignment, SecretsAnswer } from '../../../core/wire.js';
import { refused } from './call-error.js';
import { Redaction } from './redaction.js';

/** One request as it is sent. */
export interface CallRequest {
  readonly url: URL;
  readonly method: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | null;
  /** Whether the body holds values of secrets. */
  readonly hasSecretBody: boolean;
  /** The headers that are for this origin alone. */
  readonly ownHeaders: ReadonlySet<string>;
}

/** What a call is made of beside its target. */
export interface CallParts {
  /** That of the target. */
  readonly url: URL;
  readonly assignment: Assignment;
  readonly secrets: SecretsAnswer;
  /** Where the receiver reports; undefined if nobody knows. */
  readonly publicUrl: string | undefined;
  /** The trace that the call is part of; undefined begins a new one. */
  readonly traceparent: string | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

/** Headers that a browser would not send on to another origin either. */
const CREDENTIALS: readonly string[] = ['authorization', 'cookie'];
const TOKEN = 'punctual-token';
/** The headers of every call that are for its origin alone. */
const OWN: readonly string[] = [...CREDENTIALS, TOKEN, WEBHOOK_ID, WEBHOOK_TIMESTAMP, WEBHOOK_SIGNATURE];
const OWN_ALONE: ReadonlySet<string> = new Set(OWN);
/** A header may hold no control characters, and only characters of one byte. */
const HEADER_VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/;

/** The first request of a call: what the target says, with secrets filled in, what the receiver needs, and the signature. */
export function requestOf(target: HttpTarget, parts: CallParts): CallRequest {
  const { assignment, secrets, now } = parts;
  const method = target.method ?? 'POST';
  const fill = (reference: SecretReference) => filled(reference, secrets);
  const secret: string[] = [];
  const headers: Record<string, string> = { 'user-agent': `punctual/${VERSION}`, accept: '*/*' };
  for (const [name, value] of Object.entries(target.headers ?? {})) {
    const key = name.toLowerCase();
    headers[key] = typeof value === 'string' ? value : fill(value);
    if (typeof value !== 'string') secret.push(key);
    if (!HEADER_VALUE.test(headers[key])) {
      throw refused('INVALID_CALL', `The value of the header ${key} cannot be sent.`);
    }
  }
  const body = isWithoutBody(method) ? null : bodyOf(target, assignment, headers, fill);
  const { hasOwnBody, text } = body ?? { hasOwnBody: false, text: null };
  const id = `${assignment.jobId}-${assignment.fence}`;
  const timestamp = Math.floor(now / 1_000);
  headers['accept-encoding'] = 'identity';
  headers['punctual-job-id'] = assignment.jobId;
  headers['punctual-attempt'] = String(assignment.attempt);
  headers['punctual-fence'] = String(assignment.fence);
  if (assignment.receiverToken !== undefined) headers[TOKEN] = assignment.receiverToken;
  if (parts.publicUrl !== undefined) headers['punctual-url'] = parts.publicUrl;
  if (assignment.dueAt !== undefined) headers['punctual-due-at'] = assignment.dueAt;
  headers[TRACEPARENT] = parts.traceparent ?? newTrace();
  headers[WEBHOOK_ID] = id;
  headers[WEBHOOK_TIMESTAMP] = String(timestamp);
  if (secrets.signing.length > 0) {
    headers[WEBHOOK_SIGNATURE] = signWebhook({ id, timestamp, body: text ?? '' }, secrets.signing);
  }
  const ownHeaders = secret.length === 0 ? OWN_ALONE : new Set([...OWN, ...secret]);
  return { url: parts.url, method, headers, body: text, hasSecretBody: hasOwnBody, ownHeaders };
}

/** A text is sent as it is if the target says that it is no JSON; everything else is JSON. */
function bodyOf(
  target: HttpTarget,
  { payload, payloadText, workflow, task }: Assignment,
  headers: Record<string, string>,
  fill: (reference: SecretReference) => string,
): { readonly text: string; readonly hasOwnBody: boolean } {
  let isFilled = false;
  const secret = (reference: SecretReference) => {
    isFilled = true;
    return fill(reference);
  };
  // The payload of a step that says its target itself is its body with results put in, if it refers to any.
  const isStep = workflow !== undefined && task === null;
  const value =
    target.body === undefined
      ? payload
      : filledBody(target.body, { secret, ...(isStep && { resolved: { value: payload } }) });
  headers['content-type'] ??= 'application/json';
  const isText = typeof value === 'string' && !/[/+]json\b/i.test(headers['content-type']);
  if (isText) return { text: value, hasOwnBody: isFilled };
  const exact = target.body === undefined ? payloadText : undefined;
  return { text: exact ?? JSON.stringify(value) ?? 'null', hasOwnBody: isFilled };
}

function filled({ $secret, prefix = '' }: SecretReference, { values }: SecretsAnswer): string {
  const value = Object.hasOwn(values, $secret) ? values[$secret] : undefined;
  if (value === undefined) throw refused('SECRET_NOT_FOUND', `There is no secret ${$secret}.`);
  return prefix + value;
}

/** Random bytes for many traces: the call for some costs as much as the call for many. */
const randoms = Buffer.alloc(24 * 256);
let unused = 0;

/** A new trace, of which nobody has recorded a span yet. */
function newTrace(): string {
  if (unused === 0) {
    randomFillSync(randoms);
    unused = randoms.length;
  }
  unused -= 24;
  const id = randoms.toString('hex', unused, unused + 24);
  return `00-${id.slice(0, 32)}-${id.slice(32)}-00`;
}

/** What must not be kept of a call: the values of its secrets, and the token. */
export function redactionOf({ values }: SecretsAnswer, { receiverToken }: Assignment): Redaction {
  const marks = new Map<string, string>();
  for (const name of Object.keys(values)) marks.set(values[name]!, `[secret ${name}]`);
  if (receiverToken !== undefined) marks.set(receiverToken, '[token]');
  return new Redaction(marks);
}

/** The request that follows a redirect. On another origin it carries nothing that was meant for the first one. */
export function redirected(request: CallRequest, status: number, location: string): CallRequest {
  const { method, ownHeaders } = request;
  const url = URL.canParse(location, request.url.href) ? new URL(location, request.url) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw refused('REDIRECT_REFUSED', 'The receiver redirects to an address that cannot be called.');
  }
  const isSame = url.origin === request.url.origin;
  const becomesGet = status === 303 ? method !== 'HEAD' : status < 303 && method === 'POST';
  if (!isSame && !becomesGet && request.hasSecretBody) {
    const detail = `The receiver redirects to ${url.origin}, and the body holds secrets that are not for it.`;
    throw refused('REDIRECT_REFUSED', detail);
  }
  const headers = Object.fromEntries(
    Object.entries(request.headers).filter(
      ([name]) => (isSame || !ownHeaders.has(name)) && !(becomesGet && name === 'content-type'),
    ),
  );
  // The signature covers the body, which is another one now.
  if (becomesGet) delete headers[WEBHOOK_SIGNATURE];
  return {
    ...request,
    url,
    headers,
    ...(becomesGet && { method: 'GET', body: null, hasSecretBody: false }),
  };
}
