import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { ApiClient } from '../client/api-client.js';
import { PunctualError } from '../core/errors.js';
import type { Job, JobState, JobSubmission } from '../core/job.js';
import type { Page } from '../core/wire.js';
import { showGraphs } from './demo-graphs.js';
import { plural } from './output.js';
import { type Progress, progressBar } from './progress-line.js';

/** The demo of `punctual up --demo`: jobs that sleep, one that recurs, a workflow, a batch, and their progress. */

/** The module with the tasks of the demo, which the workers load. */
export const DEMO_MODULE = fileURLToPath(new URL('./demo-tasks.js', import.meta.url));

const TASK = 'nap';
const JOBS = 100;
const LONGEST_NAP = 20;
/** The schedule of the demo. */
const RECURRING = { name: 'demo', task: TASK, every: '10s', payload: { seconds: 1 } };
/** The schedule ends by itself, in case the demo could not remove it: workers of a later start do not know the task. */
const RECURS_FOR_MS = 600_000;
const PAGE = 1_000;
const LIVE_EVERY_MS = 300;
const PLAIN_EVERY_MS = 1_000;

/** A hundred naps of 1 to 20 s in mixed order, with keys so that the submission can be repeated. */
export function demoSubmissions(demo: string): JobSubmission[] {
  return Array.from({ length: JOBS }, (_, index) => ({
    task: TASK,
    payload: { seconds: 1 + ((index * 7) % LONGEST_NAP) },
    key: `demo-${demo}-${index + 1}`,
  }));
}

/** How many jobs of the demo are in which state. */
interface Standing {
  readonly total: number;
  readonly done: number;
  readonly running: number;
  readonly waiting: number;
  readonly failed: number;
}

/** Counts jobs by state. */
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

/** The counts as text. */
export function standingText(standing: Standing): string {
  const { done, running, waiting, failed, total } = standing;
  return `${done} of ${total} done, ${running} running, ${waiting} waiting, ${failed} failed`;
}

/** Submits the jobs and follows them to their end, with those that an earlier demo left unfinished. */
export async function runDemo(api: ApiClient, progress: Progress, signal: AbortSignal): Promise<void> {
  const left = await unfinished(api, signal);
  const demo = randomBytes(4).toString('hex');
  const jobs = demoSubmissions(demo);
  const { ids } = await api.request<{ ids: string[] }>('POST', '/v1/jobs/bulk', {
    body: { jobs },
    signal,
    retry: true,
  });
  if (left.length > 0)
    progress.line(
      `demo: ${plural(left.length, 'job of an earlier demo goes', 'jobs of an earlier demo go')} on`,
    );
  progress.line(`demo: ${ids.length} jobs submitted that sleep 1 to ${LONGEST_NAP} s`);
  await scheduleNap(api, signal);
  progress.line(
    `demo: a nap is scheduled every ${RECURRING.every} for ten minutes; see punctual schedule get ${RECURRING.name}`,
  );
  const [standing] = await Promise.all([
    follow(api, [...left, ...ids], progress, signal),
    showGraphs(api, demo, progress, signal),
  ]);
  progress.line(
    `demo: all ${standing.total} jobs have ended: ${standing.done} succeeded, ${standing.failed} failed`,
  );
}

/** Creates the schedule, or extends the one of an earlier demo. */
async function scheduleNap(api: ApiClient, signal: AbortSignal): Promise<void> {
  const endAt = new Date(Date.now() + RECURS_FOR_MS).toISOString();
  try {
    await api.request('POST', '/v1/schedules', { body: { ...RECURRING, endAt }, signal, retry: true });
  } catch (error) {
    if (!(error instanceof PunctualError && error.code === 'SCHEDULE_EXISTS')) throw error;
    await api.request('PATCH', `/v1/schedules/${RECURRING.name}`, { body: { endAt }, signal, retry: true });
  }
}

/** How long the end of the demo may wait for a node. */
const END_WITHIN_MS = 3_000;

/** Removes the schedule of the demo, so that a later start does not go on making jobs whose task nobody has. */
export async function endDemo(api: ApiClient, progress: Progress): Promise<void> {
  const path = `/v1/schedules/${RECURRING.name}`;
  const signal = AbortSignal.timeout(END_WITHIN_MS);
  try {
    const { task } = await api.request<{ task?: string | null }>('GET', path, { signal });
    if (task !== TASK) return;
    await api.request('DELETE', path, { signal, retry: true });
    progress.line(`demo: the schedule ${RECURRING.name} was removed`);
  } catch (error) {
    if (error instanceof PunctualError && error.code === 'SCHEDULE_NOT_FOUND') return;
    progress.line(`demo: its schedule stays for now; punctual schedule delete ${RECURRING.name} removes it`);
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

/** Counts the jobs of the demo; null while no node answers, which is temporary. */
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
  // A job that is missing has moved between two pages; it counts as waiting until the next round.
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
