import { hash, timingSafeEqual } from 'node:crypto';

/** JWTs with one fixed algorithm (HS256) under the cluster's secret; the audience says what a token is for. */

const HEADER = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url');
/** A prefix of every signed token, so that a signature under the same secret for anything else is never one. */
const PURPOSE = 'token\n';

const ATTEMPT_AUDIENCE = 'punctual:attempt';
const NODE_AUDIENCE = 'punctual:node';
const FORWARDED_AUDIENCE = 'punctual:forwarded';
/** How long the tokens between nodes are valid. */
const NODE_TOKEN_MS = 60_000;

/**
 * The token of one attempt names tenant, job and fence, and is valid only for the routes that report about its own job.
 * Whether the fence still counts is decided by the database.
 */
interface AttemptClaims {
  readonly tenant: string;
  readonly jobId: string;
  readonly fence: number;
}

/** Signs the token of an attempt. */
export function signAttemptToken(secret: Buffer, claims: AttemptClaims, expiresAtMs: number): string {
  const { tenant, jobId, fence } = claims;
  return signToken(secret, ATTEMPT_AUDIENCE, { ten: tenant, job: jobId, fence }, expiresAtMs);
}

/** The claims of a genuine attempt token that has not expired, else null. */
export function verifyAttemptToken(secret: Buffer, token: string, nowMs: number): AttemptClaims | null {
  const body = verifyToken(secret, ATTEMPT_AUDIENCE, token, nowMs);
  return body && { tenant: String(body.ten), jobId: String(body.job), fence: Number(body.fence) };
}

/** Signs the token by which nodes authenticate to each other; `actor` is on whose behalf the node calls. */
export function signNodeToken(secret: Buffer, nodeId: string, actor: string, nowMs: number): string {
  return signToken(secret, NODE_AUDIENCE, { node: nodeId, act: actor }, nowMs + NODE_TOKEN_MS);
}

/** The node and the actor of a genuine node token that has not expired, else null. */
export function verifyNodeToken(
  secret: Buffer,
  token: string,
  nowMs: number,
): { nodeId: string; actor: string } | null {
  const body = verifyToken(secret, NODE_AUDIENCE, token, nowMs);
  return body && { nodeId: String(body.node), actor: String(body.act) };
}

/** Signs the mark of a request that a node forwards. It grants no access, and a client cannot forge it. */
export function signForwarded(secret: Buffer, nodeId: string, nowMs: number): string {
  return signToken(secret, FORWARDED_AUDIENCE, { node: nodeId }, nowMs + NODE_TOKEN_MS);
}

/** Whether a mark of a forwarded request is genuine. */
export function isForwarded(secret: Buffer, token: string, nowMs: number): boolean {
  return verifyToken(secret, FORWARDED_AUDIENCE, token, nowMs) !== null;
}

/** Signs claims for an audience until a moment. This runs for every assignment that goes over the network. */
function signToken(secret: Buffer, audience: string, claims: object, expiresAtMs: number): string {
  const body = JSON.stringify({ aud: audience, ...claims, exp: Math.ceil(expiresAtMs / 1_000) });
  const signed = `${HEADER}.${Buffer.from(body).toString('base64url')}`;
  return `${signed}.${hmac(secret, PURPOSE + signed)}`;
}

/** The claims of a genuine token for the audience that has not expired, else null. */
function verifyToken(
  secret: Buffer,
  audience: string,
  token: string,
  nowMs: number,
): Readonly<Record<string, unknown>> | null {
  const parts = token.split('.');
  if (parts.length !== 3 || parts[0] !== HEADER) return null;
  const given = Buffer.from(parts[2]!, 'base64url');
  const expected = Buffer.from(hmac(secret, `${PURPOSE}${parts[0]}.${parts[1]}`), 'base64url');
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
  try {
    const body = JSON.parse(Buffer.from(parts[1]!, 'base64url').toString('utf8'));
    return body.aud === audience && body.exp * 1_000 >= nowMs ? body : null;
  } catch {
    return null;
  }
}

const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;

/** The secret as HMAC mixes it in: before the message, and before the digest of both. */
interface Pads {
  readonly inner: Buffer;
  /** With room for the digest. */
  readonly outer: Buffer;
}

const padsOf = new WeakMap<Buffer, Pads>();

function pads(secret: Buffer): Pads {
  let found = padsOf.get(secret);
  if (!found) {
    const key = secret.length > BLOCK_BYTES ? hash('sha256', secret, 'buffer') : secret;
    found = { inner: Buffer.alloc(BLOCK_BYTES, 0x36), outer: Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES, 0x5c) };
    for (const [i, byte] of key.entries()) {
      found.inner[i]! ^= byte;
      found.outer[i]! ^= byte;
    }
    padsOf.set(secret, found);
  }
  return found;
}

/**
 * HMAC-SHA256 of a text, as base64url. Two one-shot hashes take half the time of Node's own Hmac, which sets up
 * a stream for every message; a test compares the results of the two.
 */
export function hmac(secret: Buffer, message: string): string {
  const { inner, outer } = pads(secret);
  const text = Buffer.allocUnsafe(BLOCK_BYTES + Buffer.byteLength(message));
  inner.copy(text);
  text.write(message, BLOCK_BYTES, 'utf8');
  outer.write(hash('sha256', text, 'binary'), BLOCK_BYTES, 'binary');
  return hash('sha256', outer, 'base64url');
}
