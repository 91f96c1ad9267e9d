import { invalid } from '../core/errors.js';
import { RATE_RULE, type RateView, readRate } from '../core/rate.js';
import type { QueueView } from '../core/wire.js';
import type { Transport } from '../worker/transport.js';

/** What a queue may use; what is left out stays as it is, null takes a limit away. */
export interface QueueLimitOptions {
  /** Its share beside the tenant's other queues, from 1 to 1000; 1 at first. */
  readonly weight?: number;
  /** Jobs of the queue that run at the same time at most; no limit at first. */
  readonly concurrency?: number | null;
  /** Jobs of one `concurrencyKey` that run at the same time at most; 1 at first. */
  readonly keyConcurrency?: number;
  /** Jobs that start at most, e.g. `100/1s` or `{ limit: 100, per: '1s', burst: 10 }`; no limit at first. */
  readonly rate?: string | RateView | null;
}

/** Sets limits of a queue, which comes into being if need be. Doing so twice does no harm. */
export async function limitQueue(
  transport: Transport,
  name: string,
  { rate, ...rest }: QueueLimitOptions,
): Promise<QueueView> {
  const body = { ...rest, ...(rate !== undefined && { rate: rate === null ? null : rateOf(rate) }) };
  return transport.request('PATCH', `/v1/queues/${encodeURIComponent(name)}`, { body, retry: true });
}

function rateOf(input: string | RateView): RateView {
  const rate = readRate(input);
  if (rate === null) throw invalid([{ pointer: '/rate', detail: RATE_RULE }]);
  return rate;
}
