import type {
  ClusterView,
  ForecastView,
  Page,
  QueueView,
  StatsView,
  WaitingView,
  WorkerView,
} from '../../../../src/core/wire.js';
import { useResource } from '../../api/resource.js';
import { session } from '../../api/session.js';

/** What Home reads, and when again: mostly because something has happened, and now and then because time passes. */

const SECOND_MS = 1_000;

export const useWaiting = () =>
  useResource<WaitingView>('/v1/waiting', {
    events: ['job.*', 'queue.*', 'worker.*', 'leader.elected'],
    atMostEveryMs: SECOND_MS,
    everyMs: 20 * SECOND_MS,
  });

/** The same with jobs that are not live, which are counted in the database; keys that are restricted to queues are not shown them. */
export const useLater = () =>
  useResource<WaitingView>(session.value?.queues === null ? '/v1/waiting?include=later' : null, {
    events: ['job.changed', 'job.skipped', 'workflow.*', 'batch.*'],
    atMostEveryMs: 5 * SECOND_MS,
    everyMs: 30 * SECOND_MS,
  });

/** Counts by the minute for some hours back; what is a thousand minutes is not read every few seconds. */
export const useStats = (history: string) =>
  useResource<StatsView>(`/v1/stats?history=${history}`, {
    events: ['job.*'],
    atMostEveryMs: (history === '1h' ? 4 : 30) * SECOND_MS,
    everyMs: 60 * SECOND_MS,
  });

export const useQueues = () =>
  useResource<Page<QueueView>>('/v1/queues?limit=1000', {
    events: ['job.*', 'queue.*'],
    atMostEveryMs: 3 * SECOND_MS,
    everyMs: 60 * SECOND_MS,
  });

/** For an operator those of all tenants, because shared ones belong to one and serve all. */
export const useWorkers = () =>
  useResource<Page<WorkerView>>('/v1/workers?limit=1000', {
    events: ['worker.*', 'leader.elected'],
    everyMs: 30 * SECOND_MS,
    allTenants: session.value?.operator === true,
  });

export const useCluster = () =>
  useResource<ClusterView>('/v1/cluster', {
    events: ['leader.elected'],
    atMostEveryMs: 100,
    everyMs: 15 * SECOND_MS,
  });

export const useForecast = (allTenants = false) =>
  useResource<ForecastView>('/v1/forecast?minutes=60', {
    events: ['schedule.*'],
    atMostEveryMs: 15 * SECOND_MS,
    everyMs: 60 * SECOND_MS,
    allTenants,
  });
