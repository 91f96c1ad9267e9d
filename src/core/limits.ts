import type { Quotas } from './quotas.js';
import type { Rate } from './rate.js';

/** What a queue may use: its share among the tenant's queues, its concurrency and its rate. */
export interface QueueLimits {
  readonly weight: number;
  /** Jobs of the queue that run at the same time; null is no limit. */
  readonly concurrency: number | null;
  /** Jobs of one concurrency key that run at the same time. */
  readonly keyConcurrency: number;
  readonly rate: Rate | null;
}

/** What a tenant may use: its share among all tenants, and its rate of starts. */
export interface TenantLimits {
  readonly weight: number;
  readonly rate: Rate | null;
}

/** What is allowed of calls to one origin, where somebody has set it. */
export interface OriginLimits {
  /** Calls that run at the same time; null is no limit, undefined the usual number. */
  readonly concurrency: number | null | undefined;
  readonly rate: Rate | null;
}

/** Everything that an operator sets about a tenant but its name. */
export interface TenantSettings extends TenantLimits {
  readonly quotas: Quotas;
}

/** The limits of a queue that nobody has limited. */
export const DEFAULT_QUEUE_LIMITS: QueueLimits = {
  weight: 1,
  concurrency: null,
  keyConcurrency: 1,
  rate: null,
};

/** The limits of a tenant that nobody has limited. */
export const DEFAULT_TENANT_LIMITS: TenantLimits = { weight: 1, rate: null };

/** How many lanes a queue has for its concurrency keys; each takes memory in the leader. */
const LANES = 4_095;

/**
 * The lane of a concurrency key: 0 without a key, else a hash of the key. Lanes keep the jobs of a saturated key apart
 * from nearly all others. Two keys that share a lane may wait for each other, but each has its own limit.
 */
export function laneOf(concurrencyKey: string | null): number {
  if (concurrencyKey === null) return 0;
  // FNV-1a: short, even enough, and the same on every node.
  let hash = 0x811c9dc5;
  for (let i = 0; i < concurrencyKey.length; i++) {
    hash = Math.imul(hash ^ concurrencyKey.charCodeAt(i), 0x01000193);
  }
  return 1 + ((hash >>> 0) % LANES);
}
