import { setTimeout as sleep } from 'node:timers/promises';
import type { ApiClient } from '../client/api-client.js';
import { PunctualError } from '../core/errors.js';
import type { Job, JobState } from '../core/job.js';
import { COUNTERS, type Page, type QueueView, type StatsView } from '../core/wire.js';
import { readPages } from './call.js';
import type { Progress } from './progress-line.js';

const LIVE_STATES: readonly JobState[] = ['blocked', 'pending', 'running'];
const LOOK_EVERY_MS = 500;
const PAGE = 1_000;

/**
 * Whether no job is waiting or running, apart from future occurrences of schedules. The states are read one after
 * another, so a job could move from a state that is not read yet to one that was read already. Every such move
 * changes a counter, so the counters must be the same before and after.
 */
export async function isIdle(api: ApiClient, signal: AbortSignal): Promise<boolean> {
  const before = await readStats(api, signal);
  for (const state of LIVE_STATES) if (await hasWork(api, state, signal)) return false;
  const after = await readStats(api, signal);
  return COUNTERS.every((counter) => before[counter] === after[counter]);
}

/** Whether a job is in the state; jobs of future occurrences do not count. */
async function hasWork(api: ApiClient, state: JobState, signal: AbortSignal): Promise<boolean> {
  for (let after = ''; ; ) {
    const path = `/v1/jobs?state=${state}&limit=${PAGE}${after}`;
    const page: Page<Job> = await api.request('GET', path, { signal });
    if (page.data.some((job) => !isAhead(job))) return true;
    if (page.next === null) return false;
    after = `&after=${page.next}`;
  }
}

function isAhead(job: Job): boolean {
  return job.state === 'pending' && job.scheduledAt !== null && Date.parse(job.runAt) > Date.now();
}

function readStats(api: ApiClient, signal: AbortSignal): Promise<StatsView> {
  return api.request<StatsView>('GET', '/v1/stats', { signal });
}

/** Waits until no job is left to run, and shows how many are. */
export async function waitUntilIdle(api: ApiClient, progress: Progress, signal: AbortSignal): Promise<void> {
  for (;;) {
    try {
      if (await isIdle(api, signal)) return;
      const text = await openWork(api, signal);
      progress.show(text, text);
    } catch (error) {
      // A node that restarts answers soon.
      if (!(error instanceof PunctualError && error.status === 503)) throw error;
    }
    await sleep(LOOK_EVERY_MS, undefined, { signal });
  }
}

async function openWork(api: ApiClient, signal: AbortSignal): Promise<string> {
  const { data } = await readPages<QueueView>(api, '/v1/queues', { signal });
  const sum = (count: (queue: QueueView) => number) => data.reduce((total, queue) => total + count(queue), 0);
  const waiting = sum((queue) => queue.ready + queue.upcoming);
  return `waiting until idle: ${sum((queue) => queue.running)} running, ${waiting} waiting`;
}
