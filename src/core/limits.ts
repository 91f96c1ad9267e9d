import type { Rate } from './rate.js';

/** What a queue may use: its share beside the tenant's other queues, and how much at once and how often. */
export interface QueueLimits {
  readonly weight: number;
  /** Jobs of the queue that run at the same time; null is no limit. */
  readonly concurrency: number | null;
  /** Jobs of one concurrency key that run at the same time. */
  readonly keyConcurrency: number;
  readonly rate: Rate | null;
}

/** What a tenant may use: its share beside other tenants, and how often it may start a job. */
export interface TenantLimits {
  readonly weight: number;
  readonly rate: Rate | null;
}

export const DEFAULT_QUEUE_LIMITS: QueueLimits = {
  weight: 1,
  concurrency: null,
  keyConcurrency: 1,
  rate: null,
};

export const DEFAULT_TENANT_LIMITS: TenantLimits = { weight: 1, rate: null };
