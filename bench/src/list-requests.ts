import { CUSTOMERS, ERROR_CODES, QUEUES, RARE_TASK, SCHEDULES, TASKS, WORKERS } from './history.js';

/** The requests whose answers the scenario `lists` takes the time of. */

/** A job of the tenant that asks, drawn at random. */
export interface SampleJob {
  readonly id: string;
  readonly createdAt: number;
  readonly key: string | null;
}

/** Draws at random. */
export interface Draw {
  job(): SampleJob;
  /** A job with a key. */
  keyed(): SampleJob & { readonly key: string };
  oneOf<T>(values: readonly T[]): T;
  below(limit: number): number;
}

export interface ListRequest {
  readonly name: string;
  /** Whether docs/lists.md promises an index for it; else it is a scan, whose page may be short. */
  readonly indexed: boolean;
  path(draw: Draw): string;
}

const HOUR_MS = 3_600_000;

const range = ({ createdAt }: SampleJob, hours: number): string =>
  `since=${new Date(createdAt).toISOString()}&until=${new Date(createdAt + hours * HOUR_MS).toISOString()}`;

const list = (name: string, indexed: boolean, query: (draw: Draw) => string): ListRequest => ({
  ...{ name, indexed },
  path: (draw) => `/v1/jobs?${query(draw)}`,
});

const byIndex = (name: string, query: (draw: Draw) => string) => list(name, true, query);
const scan = (name: string, query: (draw: Draw) => string) => list(name, false, query);

export const LIST_REQUESTS: readonly ListRequest[] = [
  { name: 'get', indexed: true, path: (draw) => `/v1/jobs/${draw.job().id}` },
  byIndex('list of 50', () => 'limit=50'),
  byIndex('list of 100', () => 'limit=100'),
  byIndex('next page of 50', (draw) => `limit=50&after=${draw.job().id}`),
  byIndex('next page of 100', (draw) => `limit=100&after=${draw.job().id}`),
  byIndex('failed', () => 'state=failed'),
  byIndex('failed, next page', (draw) => `state=failed&after=${draw.job().id}`),
  byIndex('failed of a day', (draw) => `state=failed&${range(draw.job(), 24)}`),
  byIndex('running', () => 'state=running'),
  byIndex('running on a worker', (draw) => `state=running&worker=${draw.oneOf(WORKERS)}`),
  byIndex('of an hour', (draw) => range(draw.job(), 1)),
  byIndex('key', (draw) => `key=${draw.keyed().key}`),
  byIndex('key prefix, few', (draw) => `keyPrefix=${draw.keyed().key.slice(0, -1)}`),
  byIndex('key prefix, hundreds', (draw) => `keyPrefix=order-${1_000 + draw.below(8_999)}`),
  byIndex('schedule', (draw) => `schedule=report-${draw.below(SCHEDULES)}`),
  byIndex('schedule, next page', (draw) => `schedule=report-${draw.below(SCHEDULES)}&after=${draw.job().id}`),
  scan('succeeded', () => 'state=succeeded'),
  scan('pending', () => 'state=pending'),
  scan('cancelled, 1 in 200', () => 'state=cancelled'),
  scan('failed or cancelled', () => 'state=failed,cancelled'),
  scan('task, 1 in 50', (draw) => `task=task-${draw.below(TASKS)}`),
  scan('task, next page', (draw) => `task=task-${draw.below(TASKS)}&after=${draw.job().id}`),
  scan('task, 1 in 100,000', () => `task=${RARE_TASK}`),
  scan('queue, 1 in 5', (draw) => `queue=${draw.oneOf(QUEUES)}`),
  scan('worker, 1 in 20', (draw) => `worker=${draw.oneOf(WORKERS)}`),
  scan('error code', (draw) => `errorCode=${draw.oneOf(ERROR_CODES)}`),
  scan('failed by code', (draw) => `state=failed&errorCode=${draw.oneOf(ERROR_CODES)}`),
  scan('two attempts, 1 in 25', () => 'minAttempts=2&maxAttempts=2'),
  scan('payload, 1 in 5,000', (draw) => `payload.customer=${draw.below(CUSTOMERS)}`),
];
