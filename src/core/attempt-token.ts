import { signToken, verifyToken } from './signed-token.js';

/**
 * The token of one attempt: it names tenant, job and fence, and opens nothing but the routes that report about
 * its own job. Whether the fence still counts is for the database to say.
 */
export interface AttemptClaims {
  readonly tenant: string;
  readonly jobId: string;
  readonly fence: number;
}

const AUDIENCE = 'punctual:attempt';

export function signAttemptToken(secret: Buffer, claims: AttemptClaims, expiresAtMs: number): string {
  const { tenant, jobId, fence } = claims;
  return signToken(secret, AUDIENCE, { ten: tenant, job: jobId, fence }, expiresAtMs);
}

/** The claims of a genuine token that has not expired, else null. */
export function verifyAttemptToken(secret: Buffer, token: string, nowMs: number): AttemptClaims | null {
  const body = verifyToken(secret, AUDIENCE, token, nowMs);
  return body && { tenant: String(body.ten), jobId: String(body.job), fence: Number(body.fence) };
}
