import { randomFillSync } from 'node:crypto';
import { filledBody, isWithoutBody } from '../../../core/http-target.js';
import type { HttpTarget, SecretReference } from '../../../core/job.js';
import { TRACEPARENT } from '../../../core/trace-context.js';
import { signWebhook, WEBHOOK_ID, WEBHOOK_SIGNATURE, WEBHOOK_TIMESTAMP } from '../../../core/webhook.js';
import type { Assignment, SecretsAnswer } from '../../../core/wire.js';
import { refused } from './call-error.js';
import { Address, type CallPlan, checkHeader } from './call-plan.js';
import { Redaction } from './redaction.js';

/** One request as it is sent. */
export interface CallRequest {
  readonly address: Address;
  readonly method: string;
  /** Names, in lower case, each followed by its value. */
  readonly headers: string[];
  readonly body: string | null;
  /** Whether the body holds values of secrets. */
  readonly hasSecretBody: boolean;
  /** The headers that are for this origin alone. */
  readonly ownHeaders: ReadonlySet<string>;
}

/** What a call is made of beside its target. */
export interface CallParts {
  /** That of the target. */
  readonly plan: CallPlan;
  readonly assignment: Assignment;
  readonly secrets: SecretsAnswer;
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

/** The first request of a call: what the target says, with secrets filled in, what the receiver needs, and the signature. */
export function requestOf(target: HttpTarget, parts: CallParts): CallRequest {
  const { plan, assignment, secrets, now } = parts;
  const { address, method, secretHeaders } = plan;
  const headers = plan.headers.slice();
  for (const { name, reference } of secretHeaders) {
    const value = filled(reference, secrets);
    checkHeader(name, value);
    headers.push(name, value);
  }
  const body = isWithoutBody(method) ? NO_BODY : bodyOf(target, parts, headers);
  const id = `${assignment.jobId}-${assignment.fence}`;
  const timestamp = Math.floor(now / 1_000);
  headers.push('punctual-job-id', assignment.jobId);
  headers.push('punctual-attempt', String(assignment.attempt));
  headers.push('punctual-fence', String(assignment.fence));
  if (assignment.receiverToken !== undefined) headers.push(TOKEN, assignment.receiverToken);
  if (assignment.dueAt !== undefined) headers.push('punctual-due-at', assignment.dueAt);
  headers.push(TRACEPARENT, parts.traceparent ?? newTrace());
  headers.push(WEBHOOK_ID, id);
  headers.push(WEBHOOK_TIMESTAMP, String(timestamp));
  if (secrets.signing.length > 0) {
    const message = { id, timestamp, body: body.text ?? '' };
    headers.push(WEBHOOK_SIGNATURE, signWebhook(message, secrets.signing));
  }
  const secretNames = secretHeaders.map(({ name }) => name);
  const ownHeaders = secretNames.length === 0 ? OWN_ALONE : new Set([...OWN, ...secretNames]);
  return { address, method, headers, body: body.text, hasSecretBody: body.hasSecret, ownHeaders };
}

interface Body {
  readonly text: string | null;
  /** Whether it holds values of secrets. */
  readonly hasSecret: boolean;
}

const NO_BODY: Body = { text: null, hasSecret: false };

/** A text is sent as it is if the target says that it is no JSON; everything else is JSON. */
function bodyOf({ body }: HttpTarget, { assignment, secrets }: CallParts, headers: readonly string[]): Body {
  const { payload, payloadText, workflow, task } = assignment;
  let hasSecret = false;
  const secret = (reference: SecretReference) => {
    hasSecret = true;
    return filled(reference, secrets);
  };
  // The payload of a step that says its target itself is its body with results put in, if it refers to any.
  const isStep = workflow !== undefined && task === null;
  const value =
    body === undefined
      ? payload
      : filledBody(body, { secret, ...(isStep && { resolved: { value: payload } }) });
  if (typeof value === 'string' && !/[/+]json\b/i.test(headerValue(headers, 'content-type'))) {
    return { text: value, hasSecret };
  }
  const exact = body === undefined ? payloadText : undefined;
  return { text: exact ?? JSON.stringify(value) ?? 'null', hasSecret };
}

function headerValue(headers: readonly string[], name: string): string {
  const at = headers.findIndex((each, i) => i % 2 === 0 && each === name);
  return at < 0 ? '' : headers[at + 1]!;
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
  const marks: [string, string][] = [];
  for (const name of Object.keys(values)) marks.push([values[name]!, `[secret ${name}]`]);
  if (receiverToken !== undefined) marks.push([receiverToken, '[token]']);
  return new Redaction(marks);
}

/** The request that follows a redirect. On another origin it carries nothing that was meant for the first one. */
export function redirected(request: CallRequest, status: number, location: string): CallRequest {
  const { method, ownHeaders } = request;
  const from = request.address;
  const url = URL.canParse(location, from.url.href) ? new URL(location, from.url) : null;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== '' || url.password !== '') {
    throw refused('REDIRECT_REFUSED', 'The receiver redirects to an address that cannot be called.');
  }
  const address = new Address(url);
  const isSame = address.origin === from.origin;
  const becomesGet = status === 303 ? method !== 'HEAD' : status < 303 && method === 'POST';
  if (!isSame && !becomesGet && request.hasSecretBody) {
    const detail = `The receiver redirects to ${address.origin}, and the body holds secrets that are not for it.`;
    throw refused('REDIRECT_REFUSED', detail);
  }
  const headers: string[] = [];
  for (let i = 0; i < request.headers.length; i += 2) {
    const name = request.headers[i]!;
    // The signature covers the body, which is another one now.
    const isOfBody = name === 'content-type' || name === WEBHOOK_SIGNATURE;
    if ((isSame || !ownHeaders.has(name)) && !(becomesGet && isOfBody)) {
      headers.push(name, request.headers[i + 1]!);
    }
  }
  return {
    ...{ ...request, address, headers },
    ...(becomesGet && { method: 'GET', body: null, hasSecretBody: false }),
  };
}
