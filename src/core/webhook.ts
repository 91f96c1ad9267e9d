import { createHmac, timingSafeEqual } from 'node:crypto';
import { TextHmac } from './text-hmac.js';

/**
 * Signatures of calls by the specification Standard Webhooks: HMAC-SHA256 over id, time and body. A message carries one
 * signature for each secret that is valid at the time, so that a receiver can change to a new secret at its leisure.
 */

/** The headers of a signed call. */
export const WEBHOOK_ID = 'webhook-id';
export const WEBHOOK_TIMESTAMP = 'webhook-timestamp';
export const WEBHOOK_SIGNATURE = 'webhook-signature';

const SECRET_PREFIX = 'whsec_';
const VERSION = 'v1,';
const DEFAULT_TOLERANCE_SECONDS = 300;

/** What a signature covers. */
export interface SignedMessage {
  readonly id: string;
  /** In seconds. */
  readonly timestamp: number;
  readonly body: string;
}

/**
 * The value of the header with a signature for each of the secrets, which are `whsec_` and base64. Whoever signs many messages should
 * pass the same array each time: then the secrets are decoded once.
 */
export function signWebhook(message: SignedMessage, secrets: readonly string[]): string {
  const { id, timestamp, body } = message;
  const content = `${id}.${timestamp}.${body}`;
  let signatures = '';
  for (const hmac of hmacsOf(secrets)) {
    if (signatures !== '') signatures += ' ';
    signatures += VERSION + hmac.sign(content, 'base64');
  }
  return signatures;
}

/** What messages are signed with, by the array of the secrets, for as long as somebody has the array. */
const hmacs = new WeakMap<readonly string[], readonly TextHmac[]>();

function hmacsOf(secrets: readonly string[]): readonly TextHmac[] {
  const known = hmacs.get(secrets);
  if (known) return known;
  const made = secrets.map((secret) => new TextHmac(keyOf(secret)));
  hmacs.set(secrets, made);
  return made;
}

/** A call that was not signed by who it claims to be from, or long ago. */
export class WebhookError extends Error {
  readonly code = 'WEBHOOK_REFUSED';

  constructor(message: string) {
    super(message);
    this.name = 'WebhookError';
  }
}

/** The headers of a request as Node, or as the web, gives them. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/** How a signature is checked. */
export interface VerifyWebhookOptions {
  /** How far the time of the call may lie from now, into the past and into the future; default 300. */
  readonly toleranceSeconds?: number;
}

/** What is known of a call whose signature is right. */
export interface VerifiedWebhook {
  /** The same for every repetition of one attempt. */
  readonly id: string;
  readonly timestamp: Date;
}

/**
 * Checks that a call was signed with one of the secrets; throws a `WebhookError` if not. The body must be what arrived, byte
 * for byte: parsed and written again it is another one.
 */
export function verifyWebhook(
  headers: WebhookHeaders,
  body: string | Uint8Array,
  secrets: string | readonly string[],
  { toleranceSeconds = DEFAULT_TOLERANCE_SECONDS }: VerifyWebhookOptions = {},
): VerifiedWebhook {
  const id = headerOf(headers, WEBHOOK_ID);
  const time = headerOf(headers, WEBHOOK_TIMESTAMP);
  const given = headerOf(headers, WEBHOOK_SIGNATURE);
  const timestamp = /^\d{1,12}$/.test(time) ? Number(time) : Number.NaN;
  if (Number.isNaN(timestamp)) throw new WebhookError(`The header ${WEBHOOK_TIMESTAMP} is no time.`);
  const ageSeconds = Date.now() / 1_000 - timestamp;
  if (Math.abs(ageSeconds) > toleranceSeconds) {
    const side = ageSeconds > 0 ? 'too old' : 'in the future';
    throw new WebhookError(`The call is ${side}, by more than ${toleranceSeconds} seconds.`);
  }
  const bytes = typeof body === 'string' ? Buffer.from(body) : body;
  const content = Buffer.concat([Buffer.from(`${id}.${time}.`), bytes]);
  const expected = (typeof secrets === 'string' ? [secrets] : secrets).map((each) =>
    createHmac('sha256', keyOf(each)).update(content).digest(),
  );
  const signatures = given
    .split(' ')
    .filter((each) => each.startsWith(VERSION))
    .map((each) => Buffer.from(each.slice(VERSION.length), 'base64'));
  if (!signatures.some((each) => expected.some((right) => isSame(each, right)))) {
    throw new WebhookError('No signature of the call fits any of the secrets.');
  }
  return { id, timestamp: new Date(timestamp * 1_000) };
}

function isSame(a: Buffer, b: Buffer): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

function headerOf(headers: WebhookHeaders, name: string): string {
  const value =
    typeof headers.get === 'function'
      ? headers.get(name)
      : (headers as Readonly<Record<string, string | readonly string[] | undefined>>)[name];
  if (typeof value === 'string' && value !== '') return value;
  throw new WebhookError(`The header ${name} is missing.`);
}

function keyOf(secret: string): Buffer {
  const encoded = secret.startsWith(SECRET_PREFIX) ? secret.slice(SECRET_PREFIX.length) : secret;
  return Buffer.from(encoded, 'base64');
}
