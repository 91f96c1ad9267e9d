import type { RetryInput } from './job.js';
import { checkOptions, type OptionNames } from './known-options.js';
import type { RateView } from './rate.js';
import type { ScheduleDefinition } from './schedule.js';

/** The options that are objects themselves: what is misspelt inside of them is refused, too. */

type Backoff = NonNullable<RetryInput['backoff']>;
type WorkerLost = NonNullable<RetryInput['onWorkerLost']>;
type Dst = NonNullable<ScheduleDefinition['dst']>;
type Within = Extract<NonNullable<ScheduleDefinition['catchUp']>, object>;

const RETRY: OptionNames<RetryInput> = { maxAttempts: true, backoff: true, onWorkerLost: true };
const BACKOFF: OptionNames<Backoff> = { base: true, factor: true, max: true, jitter: true };
const WORKER_LOST: OptionNames<WorkerLost> = { maxAttempts: true };
const RATE: OptionNames<RateView> = { limit: true, per: true, burst: true };
const DST: OptionNames<Dst> = { gap: true, overlap: true };
const CATCH_UP: OptionNames<Within> = { within: true };

/** Looks into `retry` of a task, a job or a schedule. */
export function checkRetry(of: string, retry: unknown): void {
  if (!isObject(retry)) return;
  const { backoff, onWorkerLost } = retry as RetryInput;
  checkOptions(`retry of ${of}`, retry, RETRY, '/retry');
  if (isObject(backoff)) checkOptions(`retry.backoff of ${of}`, backoff, BACKOFF, '/retry/backoff');
  if (isObject(onWorkerLost))
    checkOptions(`retry.onWorkerLost of ${of}`, onWorkerLost, WORKER_LOST, '/retry/onWorkerLost');
}

/** Looks into `rate` of a worker or a queue. */
export function checkRate(of: string, rate: unknown): void {
  if (isObject(rate)) checkOptions(`rate of ${of}`, rate, RATE, '/rate');
}

/** Looks into the options of a schedule. */
export function checkScheduleParts(of: string, options: object): void {
  const { retry, dst, catchUp } = options as ScheduleDefinition;
  checkRetry(of, retry);
  if (isObject(dst)) checkOptions(`dst of ${of}`, dst, DST, '/dst');
  if (isObject(catchUp)) checkOptions(`catchUp of ${of}`, catchUp, CATCH_UP, '/catchUp');
}

/** Other values are wrong as a whole, which those who read the option say. */
function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}
