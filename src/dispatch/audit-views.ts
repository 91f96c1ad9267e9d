import { hashed } from '../core/audit.js';
import type { QueueLimits, TenantSettings } from '../core/limits.js';
import { rateView } from '../core/rate.js';
import type { PlacedRow } from '../store/job-places.js';
import type { QueueRow } from '../store/names.js';
import { rateOfRow } from '../store/queues.js';
import { quotasOfRow, type TenantRow } from '../store/tenants.js';

/** What the audit shows of a subject before and after a change: its settings as the API names them, payloads as hashes. */

/** A queue without its figures. */
export function queueView(row: QueueRow): object {
  const { paused, weight, concurrency, key_concurrency: keyConcurrency } = row;
  return limitsView({ weight, concurrency, keyConcurrency, rate: rateOfRow(row) }, paused);
}

/** The same of a queue that is given limits. */
export function limitsView(
  { weight, concurrency, keyConcurrency, rate }: QueueLimits,
  paused: boolean,
): object {
  return { paused, weight, concurrency, keyConcurrency, rate: rate && rateView(rate) };
}

/** A tenant. */
export function tenantView({
  name,
  weight,
  rate,
  quotas,
}: TenantSettings & { readonly name: string }): object {
  return { name, weight, rate: rate && rateView(rate), quotas };
}

/** A stored tenant. */
export function tenantRowView(row: TenantRow): object {
  return tenantView({ name: row.name, weight: row.weight, rate: rateOfRow(row), quotas: quotasOfRow(row) });
}

/** What steering changes about a job, and what tells it from others. */
export function jobView(job: PlacedRow): object {
  return {
    task: job.task,
    queue: job.queue,
    key: job.key,
    state: job.state,
    hold: job.held,
    priority: 10 - job.rank,
    runAt: new Date(job.run_at).toISOString(),
    attempt: job.attempts,
    payload: hashed(job.payload),
  };
}
