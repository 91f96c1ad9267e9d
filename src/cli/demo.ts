import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ApiClient } from '../client/api-client.js';
import { PunctualError } from '../core/errors.js';
import type { Job, JobState, JobSubmission } from '../core/job.js';
import type { Page } from '../core/wire.js';
import { type Progress, progressBar } from './progress-line.js';

/** The show of `punctual up --demo`: jobs that sleep, one that comes again and again, and where they stand. */

/** The module with the tasks that the workers of the demonstration load. */
export const DEMO_MODULE = fileURLToPath(new URL('./demo-tasks.js', import.meta.url));

const TASK = 'nap';
const JOBS = 100;
const LONGEST_NAP = 20;
/** The schedule of the show. */
const RECURRING = { name: 'demo', task: TASK, every: '10s', payload: { seconds: 1 } };
/** It ends by itself: workers that come after the show do not know the task. */
const RECURS_FOR_MS = 600_000;
const PAGE = 1_000;
const LIVE_EVERY_MS = 300;
const PLAIN_EVERY_MS = 1_000;

/** A hundred naps of 1 to 20 s in mixed order. Their keys make repeating the submission harmless. */
export function demoSubmissions(show: string): JobSubmission[] {
  return Array.from({ length: JOBS }, (_, index) => ({
    task: TASK,
    payload: { seconds: 1 + ((index * 7) % LONGEST_NAP) },
    key: `demo-${show}-${index + 1}`,
  }));
}

interface Standing {
  readonly total: number;
  readonly done: number;
  readonly running: number;
  readonly waiting: number;
  readonly failed: number;
}

/** Where the jobs of a show stand. */
export function standingOf(states: Iterable<JobState>): Standing {
  const standing = { total: 0, done: 0, running: 0, waiting: 0, failed: 0 };
  for (const state of states) {
    standing.total += 1;
    if (state === 'succeeded') standing.done += 1;
    else if (state === 'running') standing.running += 1;
    else if (state === 'pending' || state === 'blocked') standing.waiting += 1;
    else standing.failed += 1;
  }
  return standing;
}

/** A standing in words. */
export function standingText(standing: Standing): string {
  const { done, running, waiting, failed, total } = standing;
  return `${done} of ${total} done, ${running} running, ${waiting} waiting, ${failed} failed`;
}

/** Submits the show and follows it to its end; jobs that an earlier show left behind count too. */
export async function runDemo(api: ApiClient, progress: Progress, signal: AbortSignal): Promise<void> {
  const left = await unfinished(api, signal);
  const jobs = demoSubmissions(randomBytes(4).toString('hex'));
  const { ids } = await api.request<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
    body: { jobs },
    signal,
    retry: true,
  });
  if (left.length > 0) progress.line(`demo: ${left.length} jobs of an earlier start go on`);
  progress.line(`demo: ${ids.length} jobs submitted that sleep 1 to ${LONGEST_NAP} s`);
  await scheduleNap(api, signal);
  progress.line(
    `demo: a nap is scheduled every ${RECURRING.every} for ten minutes; see punctual schedule get ${RECURRING.name}`,
  );
  const standing = await follow(api, [...left, ...ids], progress, signal);
  progress.line(
    `demo: all ${standing.total} jobs have ended: ${standing.done} succeeded, ${standing.failed} failed`,
  );
}

/** Makes the recurring job, or lets the one that an earlier show has left go on. */
async function scheduleNap(api: ApiClient, signal: AbortSignal): Promise<void> {
  const endAt = new Date(Date.now() + RECURS_FOR_MS).toISOString();
  try {
    await api.request('POST', '/v1/schedules', { body: { ...RECURRING, endAt }, signal, retry: true });
  } catch (error) {
    if (!(error instanceof PunctualError && error.code === 'SCHEDULE_EXISTS')) throw error;
    await api.request('PATCH', `/v1/schedules/${RECURRING.name}`, { body: { endAt }, signal, retry: true });
  }
}

async function follow(
  api: ApiClient,
  ids: readonly string[],
  progress: Progress,
  signal: AbortSignal,
): Promise<Standing> {
  for (;;) {
    const standing = await readStanding(api, ids, signal);
    if (standing !== null) {
      const { total, done, failed } = standing;
      const text = standingText(standing);
      progress.show(`demo ${progressBar((done + failed) / total, 30)} ${text}`, `demo: ${text}`);
      if (done + failed === total) return standing;
    }
    await sleep(progress.live ? LIVE_EVERY_MS : PLAIN_EVERY_MS, undefined, { signal });
  }
}

/** The states of all jobs of the show; null while no node answers, which passes. */
async function readStanding(
  api: ApiClient,
  ids: readonly string[],
  signal: AbortSignal,
): Promise<Standing | null> {
  const states = new Map<string, JobState | null>(ids.map((id) => [id, null]));
  let missing = states.size;
  try {
    for (let after: string | null = null; missing > 0; ) {
      const page: Page<Job> = await readNaps(api, {}, after, signal);
      for (const job of page.data) {
        if (states.get(job.id) !== null) continue;
        states.set(job.id, job.state);
        missing -= 1;
      }
      if (page.next === null) break;
      after = page.next;
    }
  } catch (error) {
    if (error instanceof PunctualError && error.status === 503) return null;
    throw error;
  }
  // A job that was not seen moved between two pages; it is counted as waiting until the next look.
  return standingOf([...states.values()].map((state) => state ?? 'pending'));
}

async function unfinished(api: ApiClient, signal: AbortSignal): Promise<string[]> {
  const pending = await readNaps(api, { state: 'pending' }, null, signal);
  const running = await readNaps(api, { state: 'running' }, null, signal);
  const left = [...pending.data, ...running.data].filter((job) => job.schedule === null);
  return [...new Set(left.map((job) => job.id))];
}

function readNaps(
  api: ApiClient,
  filter: Readonly<Record<string, string>>,
  after: string | null,
  signal: AbortSignal,
): Promise<Page<Job>> {
  const query = new URLSearchParams({ task: TASK, limit: String(PAGE), ...filter });
  if (after !== null) query.set('after', after);
  return api.request<Page<Job>>('GET', `/v1/jobs?${query}`, { signal });
}
