import { setTimeout as sleep } from 'node:timers/promises';
import type { JobSubmission } from '../../src/core/job.js';
import type { WorkflowSteps } from '../../src/core/workflow.js';

/** What the shop has to do, beside the naps of the demo, so that there is something to be seen on every page. */

/** What pictures are taken of. */
export interface Shown {
  readonly job: string;
  readonly workflow: string;
  readonly schedule: string;
}

const TICK_MS = 1_000;

const etl = (seconds: number, ...after: readonly string[]) => ({
  ...{ task: 'etl', queue: 'imports', payload: { seconds }, after },
});

/** A nightly import: what is extracted side by side is put together, checked and published. */
const IMPORT: WorkflowSteps = {
  'extract-orders': etl(6),
  'extract-stock': { ...etl(2), payload: { seconds: 2, failsFirst: true } },
  'extract-prices': etl(4),
  'clean-orders': etl(5, 'extract-orders'),
  'clean-stock': etl(4, 'extract-stock'),
  'join-prices': etl(5, 'clean-stock', 'extract-prices'),
  ...Object.fromEntries(
    Array.from({ length: 4 }, (_, i) => [`load-part-${i + 1}`, etl(3 + i, 'clean-orders', 'join-prices')]),
  ),
  'check-totals': etl(3, 'load-part-1', 'load-part-2', 'load-part-3', 'load-part-4'),
  'build-report': etl(6, 'check-totals'),
  'warm-caches': etl(2, 'check-totals'),
  publish: etl(40, 'build-report', 'warm-caches'),
  'tell-sales': { ...etl(1, 'publish'), runIf: 'all-finished' },
};

const SCHEDULES = [
  { name: 'nightly-report', cron: '30 2 * * *', timezone: 'Europe/Berlin', queue: 'imports' },
  { name: 'newsletter', cron: '0 9 * * 1-5', timezone: 'Europe/Berlin', queue: 'imports' },
  { name: 'stock-levels', every: '10s', queue: 'imports' },
];

/** Sends a request to the API. */
export type Ask = (method: string, path: string, body?: unknown) => Promise<unknown>;

/** Opens the shop: everything but its customers. */
export async function openShop(ask: Ask): Promise<void> {
  for (const schedule of SCHEDULES)
    await ask('POST', '/v1/schedules', { ...schedule, task: 'etl', payload: { seconds: 1 } });
  await ask('POST', '/v1/jobs', { task: 'etl', queue: 'imports', payload: { seconds: 1 }, hold: true });
}

/** Begins what is under way when its picture is taken. */
export async function beginShown(ask: Ask): Promise<Shown> {
  const idOf = (answer: unknown) => (answer as { id: string }).id;
  const workflow = idOf(await ask('POST', '/v1/workflows', { name: 'nightly-import', jobs: IMPORT }));
  const payload = { film: 'holidays-in-rome.mov', bitrate: 4_500, subtitles: ['en', 'de'] };
  const retry = { maxAttempts: 3, backoff: { base: '3s' } };
  const job = idOf(await ask('POST', '/v1/jobs', { task: 'transcode', queue: 'films', payload, retry }));
  return { job, workflow, schedule: 'stock-levels' };
}

/** Customers come and go until the signal is aborted. */
export async function serveCustomers(ask: Ask, signal: AbortSignal): Promise<void> {
  for (let order = 8_000, tick = 0; !signal.aborted; tick += 1) {
    const count = 2 + Math.round(3 * (1 + Math.sin(tick / 25)));
    const jobs: JobSubmission[] = [];
    for (let i = 0; i < count; i += 1) {
      order += 1;
      const customer = 100 + (order % 37);
      jobs.push(
        { task: 'send-mail', queue: 'mail', payload: { to: `c${customer}@example.com`, customer } },
        { task: 'charge-card', queue: 'payments', priority: 7, payload: { order, amount: 12.5 } },
      );
      if (i === 0)
        jobs.push({ task: 'resize-image', queue: 'images', payload: { image: `photo-${order}.jpg` } });
    }
    await ask('POST', '/v1/jobs/bulk', { jobs });
    await sleep(TICK_MS, undefined, { signal }).catch(() => undefined);
  }
}
