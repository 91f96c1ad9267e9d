import { createHmac, createSecretKey, hkdfSync, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { KeyLimits } from './access.js';
import { TextHmac } from './text-hmac.js';

/**
 * Standard JWTs with one fixed algorithm (HS256). Each purpose has a key of its own, derived from the cluster's secret by
 * HKDF, so that a token for one purpose is never valid for another; the audience says the same to whoever reads the token.
 * A key is used for a generation of 30 days and named by `kid`. Tokens of the generation before stay valid until they
 * expire, so at any time two generations are in use.
 */

const GENERATION_MS = 30 * 86_400_000;

/** What tokens are for. */
type Purpose = 'attempt' | 'receiver' | 'node' | 'caller' | 'forwarded' | 'session' | 'upload' | 'download';

/** How long the tokens between nodes are valid. */
const NODE_TOKEN_MS = 60_000;

/**
 * The token of one attempt names tenant, job and fence, and is valid only for the routes that report about its own job or
 * add steps to its workflow.
 * Whether the fence still counts is decided by the database.
 */
interface AttemptClaims {
  readonly tenant: string;
  readonly jobId: string;
  readonly fence: number;
  /** What the key of its worker is restricted to: an attempt adds no steps that its worker could not submit. */
  readonly limits?: KeyLimits;
}

/** Signs the token of an attempt; this runs for every assignment that goes over the network. */
export function signAttemptToken(
  secret: Buffer,
  claims: AttemptClaims,
  expiresAtMs: number,
  nowMs: number,
): string {
  const { tenant, jobId, fence, limits } = claims;
  const ten = JSON.stringify(tenant);
  const lim = limits ? `,"lim":${JSON.stringify(limits)}` : '';
  const rest = `"ten":${ten},"job":"${jobId}","fence":${fence}${lim}`;
  return signBody(secret, 'attempt', rest, expiresAtMs, nowMs);
}

/** The claims of a genuine attempt token that has not expired, else null. */
export function verifyAttemptToken(secret: Buffer, token: string, nowMs: number): AttemptClaims | null {
  const body = verifyToken(secret, 'attempt', token, nowMs);
  if (!body) return null;
  const attempt = { tenant: String(body.ten), jobId: String(body.job), fence: Number(body.fence) };
  return body.lim ? { ...attempt, limits: body.lim as KeyLimits } : attempt;
}

/** What the token for the receiver of an http call says. */
export type ReceiverClaims = Omit<AttemptClaims, 'limits'>;

/**
 * Signs the token that goes to the receiver of an http call. It is for another purpose than the worker's own, so that a third
 * party that gets it can report about the attempt and do nothing else.
 */
export function signReceiverToken(
  secret: Buffer,
  { tenant, jobId, fence }: ReceiverClaims,
  expiresAtMs: number,
  nowMs: number,
): string {
  const rest = `"ten":${JSON.stringify(tenant)},"job":"${jobId}","fence":${fence}`;
  return signBody(secret, 'receiver', rest, expiresAtMs, nowMs);
}

/** The claims of a genuine receiver's token that has not expired, else null. */
export function verifyReceiverToken(secret: Buffer, token: string, nowMs: number): ReceiverClaims | null {
  const body = verifyToken(secret, 'receiver', token, nowMs);
  return body && { tenant: String(body.ten), jobId: String(body.job), fence: Number(body.fence) };
}

/** Signs the token by which nodes authenticate to each other. */
export function signNodeToken(secret: Buffer, nodeId: string, nowMs: number): string {
  return signToken(secret, 'node', { node: nodeId }, nowMs + NODE_TOKEN_MS, nowMs);
}

/** The node of a genuine node token that has not expired, else null. */
export function verifyNodeToken(secret: Buffer, token: string, nowMs: number): { nodeId: string } | null {
  const body = verifyToken(secret, 'node', token, nowMs);
  return body && { nodeId: String(body.node) };
}

/** Signs who a caller is whose request a node forwards, so that the leader decides by the same rights. */
export function signCallerToken(secret: Buffer, nodeId: string, identity: object, nowMs: number): string {
  return signToken(secret, 'caller', { node: nodeId, act: identity }, nowMs + NODE_TOKEN_MS, nowMs);
}

/** The caller of a genuine token of a forwarded request that has not expired, else null. */
export function verifyCallerToken(secret: Buffer, token: string, nowMs: number): object | null {
  const body = verifyToken(secret, 'caller', token, nowMs);
  return body && (body.act as object);
}

/** Signs the session of a browser: the hash of its key, by which nodes look the key up. It must not outlive a generation. */
export function signSessionToken(secret: Buffer, hash: Buffer, expiresAtMs: number, nowMs: number): string {
  return signToken(secret, 'session', { key: hash.toString('base64url') }, expiresAtMs, nowMs);
}

/** The hash of the key of a genuine session that has not ended, and when it does; else null. */
export function verifySessionToken(
  secret: Buffer,
  token: string,
  nowMs: number,
): { readonly hash: Buffer; readonly endsAt: number } | null {
  const body = verifyToken(secret, 'session', token, nowMs);
  return body && { hash: Buffer.from(String(body.key), 'base64url'), endsAt: Number(body.exp) * 1_000 };
}

/**
 * Signs the mark of a request that a node forwards, with the address that the request came from. It grants no access, and a
 * client cannot forge it.
 */
export function signForwarded(
  secret: Buffer,
  nodeId: string,
  nowMs: number,
  address: string | null = null,
): string {
  return signToken(secret, 'forwarded', { node: nodeId, adr: address }, nowMs + NODE_TOKEN_MS, nowMs);
}

/** Where a request came from, by its mark; undefined if that is not genuine, null if the node did not know. */
export function forwardedFrom(secret: Buffer, token: string, nowMs: number): string | null | undefined {
  const body = verifyToken(secret, 'forwarded', token, nowMs);
  return body === null ? undefined : typeof body.adr === 'string' ? body.adr : null;
}

/** Whether a mark of a forwarded request is genuine. */
export function isForwarded(secret: Buffer, token: string, nowMs: number): boolean {
  return verifyToken(secret, 'forwarded', token, nowMs) !== null;
}

/** What the address of an upload allows: to send these bytes for this artifact, until then. */
export interface UploadClaims {
  readonly tenant: string;
  readonly artifact: string;
  readonly sha256: string;
  readonly size: number;
  readonly until: number;
}

/** How long an address that has expired is still told apart from one that nobody signed. */
const KNOWN_EXPIRED_MS = 7 * 86_400_000;

/** Signs the address of an upload. It says itself when it expires, so that whoever is late is told so. */
export function signUpload(secret: Buffer, claims: UploadClaims, nowMs: number): string {
  const { tenant, artifact, sha256, size, until } = claims;
  const body = { ten: tenant, art: artifact, sha: sha256, len: size, end: until };
  return signToken(secret, 'upload', body, until + KNOWN_EXPIRED_MS, nowMs);
}

/** The claims of a genuine address of an upload, which may have expired; else null. */
export function verifyUpload(secret: Buffer, token: string, nowMs: number): UploadClaims | null {
  const body = verifyToken(secret, 'upload', token, nowMs);
  return (
    body && {
      ...{ tenant: String(body.ten), artifact: String(body.art), sha256: String(body.sha) },
      ...{ size: Number(body.len), until: Number(body.end) },
    }
  );
}

/** What the address of a download allows: to read these bytes. */
export interface DownloadClaims {
  readonly tenant: string;
  readonly artifact: string;
}

/** Signs the address of a download. */
export function signDownload(
  secret: Buffer,
  { tenant, artifact }: DownloadClaims,
  expiresAtMs: number,
  nowMs: number,
): string {
  return signToken(secret, 'download', { ten: tenant, art: artifact }, expiresAtMs, nowMs);
}

/** The claims of a genuine address of a download that has not expired, else null. */
export function verifyDownload(secret: Buffer, token: string, nowMs: number): DownloadClaims | null {
  const body = verifyToken(secret, 'download', token, nowMs);
  return body && { tenant: String(body.ten), artifact: String(body.art) };
}

/** The key of a purpose in a generation, and the header of the tokens that are signed with it. */
interface TokenKey {
  readonly generation: number;
  readonly header: string;
  readonly key: KeyObject;
  readonly hmac: TextHmac;
}

/** Derived keys by secret and purpose, the newest first: deriving one takes longer than signing. */
const derived = new WeakMap<Buffer, Map<Purpose, TokenKey[]>>();
/** Of the generations in use and the next one; more would be of no use. */
const MOST_DERIVED = 3;

/** The key with which tokens of a purpose are signed in a generation, for other programs that verify them. */
export function tokenKey(secret: Buffer, purpose: Purpose, generation: number): TokenKey {
  let byPurpose = derived.get(secret);
  if (!byPurpose) {
    byPurpose = new Map();
    derived.set(secret, byPurpose);
  }
  const known = byPurpose.get(purpose) ?? [];
  const found = known.find((each) => each.generation === generation);
  if (found) return found;
  const kid = `${purpose}-${generation}`;
  const bytes = Buffer.from(hkdfSync('sha256', secret, '', `punctual token ${kid}`, 32));
  const header = encode({ alg: 'HS256', typ: 'JWT', kid });
  const made = { generation, header, key: createSecretKey(bytes), hmac: new TextHmac(bytes) };
  byPurpose.set(purpose, [made, ...known].slice(0, MOST_DERIVED));
  return made;
}

/** The generation of a moment. */
export function generationAt(nowMs: number): number {
  return Math.floor(nowMs / GENERATION_MS);
}

const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

function signToken(
  secret: Buffer,
  purpose: Purpose,
  claims: object,
  expiresAtMs: number,
  nowMs: number,
): string {
  return signBody(secret, purpose, JSON.stringify(claims).slice(1, -1), expiresAtMs, nowMs);
}

/** Signs claims that are the inside of a JSON object. A template takes half the time of serialising an object. */
function signBody(
  secret: Buffer,
  purpose: Purpose,
  claims: string,
  expiresAtMs: number,
  nowMs: number,
): string {
  const { header, hmac } = tokenKey(secret, purpose, generationAt(nowMs));
  const body = `{"aud":"punctual:${purpose}",${claims},"exp":${Math.ceil(expiresAtMs / 1_000)}}`;
  const signed = `${header}.${Buffer.from(body).toString('base64url')}`;
  return `${signed}.${hmac.sign(signed, 'base64url')}`;
}

/** The claims of a genuine token for the purpose that has not expired, else null. */
function verifyToken(
  secret: Buffer,
  purpose: Purpose,
  token: string,
  nowMs: number,
): Readonly<Record<string, unknown>> | null {
  const parts = token.split('.');
  const [header, body, signature] = parts;
  if (parts.length !== 3 || !header || !body || !signature) return null;
  // The whole header is compared and nothing in it is believed: it can choose neither algorithm nor key. The clock of the
  // node that signed may be a little ahead, at a change of generations too.
  const now = generationAt(nowMs);
  const generations = [now, now - 1, now + 1];
  const found = generations.find((each) => tokenKey(secret, purpose, each).header === header);
  if (found === undefined) return null;
  const { key } = tokenKey(secret, purpose, found);
  const given = Buffer.from(signature, 'base64url');
  const expected = createHmac('sha256', key).update(`${header}.${body}`).digest();
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
  try {
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString('utf8'));
    return claims.aud === `punctual:${purpose}` && claims.exp * 1_000 >= nowMs ? claims : null;
  } catch {
    return null;
  }
}
