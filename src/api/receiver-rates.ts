import type { AttemptCredential } from './caller.js';
import { KeyRates } from './key-rates.js';

/** The most requests in a second at a node with the token of one attempt, and those of a tenant about how far calls are. */
const PER_ATTEMPT = 20;
const PER_TENANT = 2_000;

/**
 * How often receivers of calls report at this node. They are third parties, and each line of a log is a write. Ends are not counted
 * for the tenant, because each attempt has one: a receiver must not lose what it has done to the progress of others.
 */
export class ReceiverRates {
  private readonly attempts = new KeyRates(PER_ATTEMPT, 'The receiver of a call');
  private readonly tenants = new KeyRates(PER_TENANT, 'The receivers of a tenant');

  /** Takes note of a request; throws RATE_LIMITED if there are too many. */
  count({ tenant, jobId, fence }: AttemptCredential, isEnd: boolean, now = performance.now()): void {
    this.attempts.count(`${jobId} ${fence}`, now);
    if (!isEnd) this.tenants.count(tenant, now);
  }
}
