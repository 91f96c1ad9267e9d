import { signToken, verifyToken } from './signed-token.js';

/** How nodes know each other: a short-lived token under the secret that lives in their common database. */

const AUDIENCE = 'punctual:node';
const LIFETIME_MS = 60_000;

/** `actor` is on whose behalf the node calls. */
export function signNodeToken(secret: Buffer, nodeId: string, actor: string, nowMs: number): string {
  return signToken(secret, AUDIENCE, { node: nodeId, act: actor }, nowMs + LIFETIME_MS);
}

export function verifyNodeToken(
  secret: Buffer,
  token: string,
  nowMs: number,
): { nodeId: string; actor: string } | null {
  const body = verifyToken(secret, AUDIENCE, token, nowMs);
  return body && { nodeId: String(body.node), actor: String(body.act) };
}

/** Marks a request that a node passes on. It opens no door, and a client cannot make one. */
const FORWARDED_AUDIENCE = 'punctual:forwarded';

export function signForwarded(secret: Buffer, nodeId: string, nowMs: number): string {
  return signToken(secret, FORWARDED_AUDIENCE, { node: nodeId }, nowMs + LIFETIME_MS);
}

export function isForwarded(secret: Buffer, token: string, nowMs: number): boolean {
  return verifyToken(secret, FORWARDED_AUDIENCE, token, nowMs) !== null;
}
