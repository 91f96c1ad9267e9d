import { PunctualError } from './errors.js';

/** What an operator can limit about a tenant, beside its share and its rate of starts. */
export const QUOTA_NAMES = [
  /** Jobs in the live table: due within minutes, or running. */
  'liveJobs',
  /** Jobs that wait outside the live table: due later, or on hold. */
  'laterJobs',
  'schedules',
  'queues',
  'submissionsPerSecond',
  /** The largest payload of a job, in bytes of JSON. */
  'payloadBytes',
  /** The bytes of all artifacts together, those included that are not uploaded yet. */
  'artifactBytes',
] as const;

export type QuotaName = (typeof QUOTA_NAMES)[number];

/** The quotas of a tenant; null is none. */
export type Quotas = { readonly [N in QuotaName]: number | null };

/** The highest limit of a quota. */
export const MAX_QUOTA = 2 ** 31 - 1;
const MAX_ARTIFACT_BYTES = Number.MAX_SAFE_INTEGER;

/** The highest limit of this quota. */
export function maxOfQuota(name: QuotaName): number {
  return name === 'artifactBytes' ? MAX_ARTIFACT_BYTES : MAX_QUOTA;
}

/** The quotas of a tenant to which nobody has given one. */
export const NO_QUOTAS: Quotas = {
  liveJobs: null,
  laterJobs: null,
  schedules: null,
  queues: null,
  submissionsPerSecond: null,
  payloadBytes: null,
  artifactBytes: null,
};

/** Quotas with some of them changed. */
export function changeQuotas(now: Quotas, change: Partial<Quotas> | undefined): Quotas {
  return { ...now, ...change };
}

/** Whether the jobs of a tenant with these quotas are counted. */
export function countsJobs({ liveJobs, laterJobs }: Quotas): boolean {
  return liveJobs !== null || laterJobs !== null;
}

/** The error for a request beyond a quota; certainly nothing was stored. `retryAfter` is for quotas that time helps with. */
export function overQuota(
  quota: QuotaName,
  limit: number,
  detail: string,
  retryAfter?: number,
): PunctualError {
  return new PunctualError('QUOTA_EXCEEDED', detail, {
    quota: { name: quota, limit },
    ...(retryAfter !== undefined && { retryAfter }),
  });
}
