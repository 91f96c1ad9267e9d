import { verifyAttemptToken } from '../core/tokens.js';
import type { FencedJob } from '../core/wire.js';
import type { NodeContext } from './context.js';
import { forbidden } from './restrictions.js';
import type { Shard } from './shard.js';

/**
 * Throws unless the token is that of the attempt. The receiver of a call has a token, too; it is signed for another purpose, and is
 * refused here. Only a worker in this process has none.
 */
export function mustBeItsToken(
  { secret }: NodeContext,
  { clock }: Shard,
  tenant: string,
  { token, jobId, fence }: FencedJob & { readonly token?: string },
): void {
  if (token === undefined) return;
  const claims = verifyAttemptToken(secret, token, clock.now());
  const isItsOwn = claims?.tenant === tenant && claims.jobId === jobId && claims.fence === fence;
  if (!isItsOwn) throw forbidden('The token is not that of the attempt.');
}
