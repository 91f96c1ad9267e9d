import { createHmac, timingSafeEqual } from 'node:crypto';

/**
 * The token of one attempt: a JWT with a fixed algorithm (HS256) that names tenant, job and fence. It opens
 * nothing but the routes that report about its own job, and whether the fence still counts is for the database
 * to say.
 */
export interface AttemptClaims {
  readonly tenant: string;
  readonly jobId: string;
  readonly fence: number;
}

const HEADER = Buffer.from('{"alg":"HS256","typ":"JWT"}').toString('base64url');
const AUDIENCE = 'punctual:attempt';

function signature(secret: Buffer, signed: string): Buffer {
  return createHmac('sha256', secret).update('attempt\n').update(signed).digest();
}

export function signAttemptToken(secret: Buffer, claims: AttemptClaims, expiresAtMs: number): string {
  const body = JSON.stringify({
    aud: AUDIENCE,
    ten: claims.tenant,
    job: claims.jobId,
    fence: claims.fence,
    exp: Math.ceil(expiresAtMs / 1_000),
  });
  const signed = `${HEADER}.${Buffer.from(body).toString('base64url')}`;
  return `${signed}.${signature(secret, signed).toString('base64url')}`;
}

/** The claims of a genuine token that has not expired, else null. */
export function verifyAttemptToken(secret: Buffer, token: string, nowMs: number): AttemptClaims | null {
  const parts = token.split('.');
  if (parts.length !== 3 || parts[0] !== HEADER) return null;
  const given = Buffer.from(parts[2]!, 'base64url');
  const expected = signature(secret, `${parts[0]}.${parts[1]}`);
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) return null;
  try {
    const body = JSON.parse(Buffer.from(parts[1]!, 'base64url').toString('utf8'));
    if (body.aud !== AUDIENCE || body.exp * 1_000 < nowMs) return null;
    return { tenant: body.ten, jobId: body.job, fence: body.fence };
  } catch {
    return null;
  }
}
