import { signAttemptToken } from '../core/attempt-token.js';
import type { Target } from '../core/job.js';
import type { Assignment } from '../core/wire.js';
import type { Running } from './running.js';

/** Results may arrive long after the deadline when a worker was cut off; the fence decides, not the token. */
const TOKEN_GRACE_MS = 24 * 3_600_000;

/** What a worker is told about an attempt. The token is signed when it is first looked at. */
export function toAssignment(running: Running, secret: Buffer): Assignment {
  let token: string | undefined;
  return {
    jobId: running.id,
    tenant: running.tenant,
    task: running.task,
    target:
      running.target === null
        ? { type: 'handler', name: running.task! }
        : (JSON.parse(running.target) as Target),
    payload: JSON.parse(running.payload),
    attempt: running.fence,
    fence: running.fence,
    epoch: running.epoch,
    timeoutMs: running.timeoutMs,
    get token() {
      token ??= signAttemptToken(
        secret,
        { tenant: running.tenant, jobId: running.id, fence: running.fence },
        running.claimedAt + running.timeoutMs + TOKEN_GRACE_MS,
      );
      return token;
    },
  };
}
