import { PunctualError } from '../core/errors.js';
import type { Quotas } from '../core/quotas.js';
import type { Shard } from './shard.js';

/** The checks of quotas that need no database. A tenant without quotas costs a look-up in memory. */

/** Throws if the payload is larger than the tenant's quota. It answers 413 and not 429: trying again never helps. */
export function mustFitPayload(quotas: Quotas | null, payload: string, pointer = '/payload'): void {
  const limit = quotas?.payloadBytes ?? null;
  if (limit === null || payload.length * 3 <= limit) return;
  if (Buffer.byteLength(payload) <= limit) return;
  const detail = `must be at most ${limit} bytes as JSON, by the quota of the tenant`;
  throw new PunctualError('PAYLOAD_TOO_LARGE', `${pointer}: ${detail}`, {
    errors: [{ pointer, detail }],
    quota: { name: 'payloadBytes', limit },
  });
}

/** Does something for which room is taken from the tenant's quota of submissions per second; given back if it fails. */
export function withinRate<T>(
  shard: Shard,
  tenant: string,
  quotas: Quotas | null,
  jobs: number,
  work: () => Promise<T>,
): Promise<T> {
  const limit = quotas?.submissionsPerSecond ?? null;
  return limit === null ? work() : withinLimit(shard, tenant, limit, jobs, work);
}

async function withinLimit<T>(
  { rates }: Shard,
  tenant: string,
  limit: number,
  jobs: number,
  work: () => Promise<T>,
): Promise<T> {
  const giveBack = rates.take(tenant, limit, jobs);
  try {
    return await work();
  } catch (error) {
    giveBack();
    throw error;
  }
}
