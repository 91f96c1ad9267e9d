import { createHmac, timingSafeEqual } from 'node:crypto';

/** JWTs with one fixed algorithm (HS256) under the cluster's secret; the audience says what a token is for. */

const HEADER = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url');

function signature(secret: Buffer, signed: string): Buffer {
  return createHmac('sha256', secret).update('token\n').update(signed).digest();
}

/** Signs claims for an audience until a moment. */
export function signToken(secret: Buffer, audience: string, claims: object, expiresAtMs: number): string {
  const body = JSON.stringify({ aud: audience, ...claims, exp: Math.ceil(expiresAtMs / 1_000) });
  const signed = `${HEADER}.${Buffer.from(body).toString('base64url')}`;
  return `${signed}.${signature(secret, signed).toString('base64url')}`;
}

/** The claims of a genuine token for the audience that has not expired, else null. */
export function verifyToken(
  secret: Buffer,
  audience: string,
  token: string,
  nowMs: number,
): Readonly<Record<string, unknown>> | null {
  const parts = token.split('.');
  if (parts.length !== 3 || parts[0] !== HEADER) return null;
  const given = Buffer.from(parts[2]!, 'base64url');
  const expected = signature(secret, `${parts[0]}.${parts[1]}`);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
  try {
    const body = JSON.parse(Buffer.from(parts[1]!, 'base64url').toString('utf8'));
    return body.aud === audience && body.exp * 1_000 >= nowMs ? body : null;
  } catch {
    return null;
  }
}
