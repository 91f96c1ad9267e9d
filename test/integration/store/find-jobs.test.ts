import { afterAll, beforeAll, expect, it } from 'vitest';
import type { JobState } from '../../../src/core/job.js';
import { LAST_UUID, nextUuid } from '../../../src/core/uuid.js';
import { endWaitingJobs } from '../../../src/store/end-waiting-jobs.js';
import { countJobs, type FoundPage, findJobs } from '../../../src/store/find-jobs.js';
import { type JobSearch, Stride } from '../../../src/store/job-search.js';
import type { TermKey } from '../../../src/store/leader-statement.js';
import { postponeJobs, unchanged } from '../../../src/store/place-jobs.js';
import type { NewJob } from '../../../src/store/submit-jobs.js';
import { TENANT, TestShard } from './test-shard.js';

let shard: TestShard;
let term: TermKey;
let close: () => Promise<void>;
/** The ids of all jobs, newest first, by the state that they are in; those on hold once more. */
const ids: Record<'pending' | 'held' | 'running' | 'failed' | 'cancelled', string[]> = {
  ...{ pending: [], held: [], running: [], failed: [], cancelled: [] },
};
/** The ids of another tenant's jobs, which lie among them. */
let foreign: string[];

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  term = await shard.lead();
  const jobs: NewJob[] = [];
  for (let n = 0; n < 150; n++)
    jobs.push(await shard.newJob({}, { tenant: n % 3 === 0 ? 'globex' : TENANT }));
  const stored = await shard.store(jobs);
  foreign = stored.filter((_, n) => n % 3 === 0);
  const all = stored.filter((_, n) => n % 3 !== 0);
  // In an order that is the same every time and mixes the places.
  for (const [n, id] of all.entries()) {
    const kind = (['pending', 'held', 'running', 'failed', 'cancelled'] as const)[(n * n + (n >> 3)) % 5]!;
    ids[kind].unshift(id);
    if (kind === 'held')
      await postponeJobs(shard.hot, term, [{ ...unchanged(id), admitAt: null, held: true }]);
    if (kind === 'running' || kind === 'failed') await shard.claim(term, [id]);
    if (kind === 'failed') await shard.fail(term, id);
    const end = { id, state: 'cancelled' as const, error: null };
    if (kind === 'cancelled') await endWaitingJobs(shard.hot, term, 'live', [end], Date.now());
  }
});
afterAll(() => close());

const newestFirst = (...lists: string[][]) => lists.flat().sort().reverse();

function searchOf(states: readonly JobState[]): JobSearch {
  return { states };
}

/** All pages of a search. */
async function findAll(
  search: JobSearch,
  limit: number,
  examined: number,
  byQueue: boolean,
): Promise<string[]> {
  const found: string[] = [];
  let below: string | null = LAST_UUID;
  while (below !== null) {
    const stride = new Stride(search, examined);
    stride.byQueue = byQueue;
    const page: FoundPage = await findJobs(shard.hot, TENANT, search, below, limit, stride);
    expect(page.jobs.length).toBeLessThanOrEqual(Math.min(limit, 3 * examined));
    found.push(...page.jobs.map(({ id }) => id));
    expect(page.next === null || page.next < below).toBe(true);
    expect(foreign).not.toContain(page.next);
    below = page.next;
  }
  return found;
}

it.each([
  [1_000, 1_000, 'id'],
  [1, 1_000, 'id'],
  [1_000, 2, 'id'],
  [3, 7, 'id'],
  [7, 3, 'id'],
  [1_000, 1_000, 'queue'],
  [1, 1_000, 'queue'],
  [1_000, 2, 'queue'],
  [3, 7, 'queue'],
])(
  'pages of %i jobs, after %i examined rows, by %s, hold every job once and in order',
  async (limit, examined, by) => {
    const all = (search: JobSearch) => findAll(search, limit, examined, by === 'queue');
    expect(await all(searchOf(['pending', 'running']))).toEqual(
      newestFirst(ids.pending, ids.held, ids.running),
    );
    expect(await all(searchOf(['pending']))).toEqual(newestFirst(ids.pending, ids.held));
    expect(await all(searchOf(['running']))).toEqual(ids.running);
    expect(await all({ ...searchOf(['pending']), held: true })).toEqual(ids.held);
    expect(await all({ ...searchOf(['pending']), held: false })).toEqual(ids.pending);
    expect(await all(searchOf(['failed']))).toEqual(ids.failed);
    expect(await all(searchOf(['failed', 'cancelled']))).toEqual(newestFirst(ids.failed, ids.cancelled));
    expect(await all({ ...searchOf(['pending']), task: 'nobody' })).toEqual([]);
    const from = ids.running[5]!;
    expect(await all({ ...searchOf(['running']), from })).toEqual(ids.running.slice(0, 6));
    expect(await all({ ...searchOf(['running']), ids: [from] })).toEqual([from]);
    expect(await all({ ...searchOf(['pending']), ids: [from] })).toEqual([]);
  },
);

it('jobs are counted up to a number, and from there on', async () => {
  const search = searchOf(['pending', 'running']);
  const total = ids.pending.length + ids.held.length + ids.running.length;
  expect(await countJobs(shard.pool, TENANT, search, LAST_UUID, () => true)).toEqual({
    ...{ count: total, next: null },
  });
  const below = nextUuid(ids.running[3]!);
  const { count } = await countJobs(shard.pool, TENANT, searchOf(['running']), below, () => true);
  expect(count).toBe(ids.running.length - 3);
  expect(await countJobs(shard.pool, 'globex', search, LAST_UUID, () => true)).toMatchObject({ count: 50 });
  expect(await countJobs(shard.pool, 'nobody', search, LAST_UUID, () => true)).toMatchObject({ count: 0 });
});
