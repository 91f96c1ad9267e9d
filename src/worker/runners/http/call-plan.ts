import { parseDuration } from '../../../core/duration.js';
import {
  DEFAULT_CALL_TIMEOUT_MS,
  isRefusedHeader,
  isWithoutBody,
  REFUSED_HEADER_RULE,
} from '../../../core/http-target.js';
import type { HttpTarget, SecretReference } from '../../../core/job.js';
import { VERSION } from '../../../core/version.js';
import { refused } from './call-error.js';

/** The most plans that are kept, and the most characters of the address and the headers of each. */
const MOST_PLANS = 1_000;
const MOST_CHARACTERS = 4_096;
/** A header may hold no control characters, and only characters of one byte. */
const HEADER_VALUE = /^[\t\u0020-\u007e\u0080-\u00ff]*$/;

/** Where a request goes to. */
export class Address {
  readonly origin: string;
  /** As it stands in the first line of the request. */
  readonly path: string;

  constructor(readonly url: URL) {
    this.origin = url.origin;
    this.path = url.pathname + url.search;
  }
}

/** What all calls of one definition have in common. Nothing in it comes from a body or is a secret. */
export interface CallPlan {
  readonly address: Address;
  readonly method: string;
  readonly timeoutMs: number;
  /** Names, in lower case, and values of the headers that are the same in every call. */
  readonly headers: readonly string[];
  /** The headers that are filled in for each call. */
  readonly secretHeaders: readonly SecretHeader[];
}

interface SecretHeader {
  readonly name: string;
  readonly reference: SecretReference;
}

interface KeptPlan {
  readonly method: string | undefined;
  readonly timeout: string | undefined;
  /** As JSON. */
  readonly headers: string | undefined;
  readonly plan: CallPlan;
}

/**
 * Works out once what all calls of one definition have in common: reading the address and checking the headers would cost more than
 * the rest of a request. Most jobs that call an address say the same in everything but the body.
 */
export class CallPlans {
  /** By the address: what it was last called with. */
  readonly #kept = new Map<string, KeptPlan>();

  /** `publicUrl` is where receivers report; undefined if nobody knows. */
  constructor(private readonly publicUrl: string | undefined) {}

  /** Throws if a header cannot be sent. */
  of(target: HttpTarget): CallPlan {
    const { url, method, timeout } = target;
    const headers = target.headers && JSON.stringify(target.headers);
    const kept = this.#kept.get(url);
    const isSame = kept?.method === method && kept?.timeout === timeout && kept?.headers === headers;
    if (kept && isSame) return kept.plan;
    const plan = planOf(target, this.publicUrl);
    if (url.length + (headers?.length ?? 0) > MOST_CHARACTERS) return plan;
    if (this.#kept.size >= MOST_PLANS) this.#kept.clear();
    this.#kept.set(url, { method, timeout, headers, plan });
    return plan;
  }
}

/** Checks the value of a header; what is sent must not begin another header. */
export function checkHeader(name: string, value: string): void {
  if (!HEADER_VALUE.test(value)) {
    throw refused('INVALID_CALL', `The value of the header ${name} cannot be sent.`);
  }
}

function planOf(target: HttpTarget, publicUrl: string | undefined): CallPlan {
  const method = target.method ?? 'POST';
  const all = new Map<string, string | SecretReference>();
  all.set('user-agent', `punctual/${VERSION}`).set('accept', '*/*');
  for (const [name, value] of Object.entries(target.headers ?? {})) {
    if (isRefusedHeader(name)) throw refused('INVALID_CALL', `The header ${name} ${REFUSED_HEADER_RULE}.`);
    if (typeof value === 'string') checkHeader(name.toLowerCase(), value);
    all.set(name.toLowerCase(), value);
  }
  if (!isWithoutBody(method) && !all.has('content-type')) all.set('content-type', 'application/json');
  all.set('accept-encoding', 'identity');
  if (publicUrl !== undefined) all.set('punctual-url', publicUrl);
  const headers: string[] = [];
  const secretHeaders: SecretHeader[] = [];
  for (const [name, value] of all) {
    if (typeof value === 'string') headers.push(name, value);
    else secretHeaders.push({ name, reference: value });
  }
  return {
    ...{ address: new Address(new URL(target.url)), method, headers, secretHeaders },
    timeoutMs: parseDuration(target.timeout ?? '') ?? DEFAULT_CALL_TIMEOUT_MS,
  };
}
