import type { ExecTarget, HttpTarget, Target } from './job.js';

/** Secrets of tenants: how they are shown, where they may go, and which of them a target refers to. */

/** The most origins that one secret may go to. */
export const MAX_ORIGINS = 16;
/** The most bytes of a value. */
export const MAX_SECRET_BYTES = 8 * 1024;
/** The most secrets that one call can ask for. */
export const MAX_SECRETS_OF_CALL = 16;
/** The most signing secrets of a tenant that are valid at the same time. */
export const MAX_SIGNING_SECRETS = 5;

/** A secret as it is shown: everything but its value. */
export interface SecretView {
  readonly name: string;
  /** The origins that it may go to. */
  readonly origins: readonly string[];
  /** Grows with each change. */
  readonly version: number;
  readonly createdAt: string;
  readonly createdBy: string;
  readonly changedAt: string;
  readonly changedBy: string;
}

/** What a secret is set to. */
export interface SecretInput {
  readonly value: string;
  /** Such as `https://api.example.com`: scheme, host and, where it is not the usual one, port. */
  readonly origins: readonly string[];
}

/** A signing secret as it is shown later on. */
export interface SigningSecretView {
  readonly id: string;
  readonly createdAt: string;
  /** When it ends; null for one that was not replaced. */
  readonly expiresAt: string | null;
}

/** A signing secret that was just made, with its value, which is shown this once. */
export interface NewSigningSecret extends SigningSecretView {
  /** `whsec_` and 32 bytes in base64. */
  readonly secret: string;
}

/** A master key that stored secrets are under. */
export interface SecretKeyView {
  /** The beginning of its SHA-256. */
  readonly keyId: string;
  /** Whether the node that answers has it. */
  readonly isKnown: boolean;
  /** Secrets and signing secrets under it, counted up to a bound. */
  readonly values: number;
}

/** How the master keys of a node fit what is stored. */
export interface SecretKeysView {
  /** The key with which the node that answers encrypts; null if it has none. */
  readonly current: string | null;
  /** All keys of the node, the current one first. */
  readonly known: readonly string[];
  /** The keys that stored values need. */
  readonly stored: readonly SecretKeyView[];
}

/** What a part of a change of the master key has done. */
export interface RekeyAnswer extends SecretKeysView {
  /** Values that this call has encrypted anew. */
  readonly rekeyed: number;
  /** Values that are not under the current key, counted up to a bound. */
  readonly remaining: number;
  /** Whether nothing is left that this node could encrypt anew. */
  readonly done: boolean;
  /** What to do now, in a sentence. */
  readonly detail: string;
}

/** Only a scheme and an authority without a user: the parser of URLs would drop, repair or hide the rest. */
const ORIGIN = /^https?:\/\/[^\s/?#@\\*]+\/?$/i;

/** An origin, or `exec`, in its one spelling; null if the text is none, or more than one. */
export function readOrigin(text: string): string | null {
  if (text === EXEC_ORIGIN) return text;
  if (!ORIGIN.test(text) || !URL.canParse(text)) return null;
  const { origin, hostname } = new URL(text);
  return hostname === '' ? null : origin;
}

/** What stands among the origins of a secret that programs may have in their environment. */
export const EXEC_ORIGIN = 'exec';

/** Where the secrets of a target go: the origin of a call, or `exec`. */
export function originOf(target: HttpTarget | ExecTarget): string {
  return target.type === 'exec' ? EXEC_ORIGIN : new URL(target.url).origin;
}

/** The names of the secrets that a target refers to, in headers, body or environment. */
export function secretNamesIn(target: Target): ReadonlySet<string> {
  const names = new Set<string>();
  if (target.type === 'handler') return names;
  // By hand: a body may be nested more deeply than calls should be.
  const open: unknown[] = target.type === 'http' ? [target.headers, target.body] : [target.env];
  while (open.length > 0) {
    const value = open.pop();
    if (typeof value !== 'object' || value === null) continue;
    const { $secret } = value as { readonly $secret?: unknown };
    if (Object.hasOwn(value, '$secret') && typeof $secret === 'string') names.add($secret);
    for (const inner of Object.values(value)) if (typeof inner === 'object') open.push(inner);
  }
  return names;
}
