import { afterAll, beforeAll, expect, it } from 'vitest';
import type { TermKey } from '../../../src/store/leader-statement.js';
import { listJobs } from '../../../src/store/list-jobs.js';
import {
  admitJobs,
  parseLater,
  postponeJobs,
  redriveJobs,
  unchanged,
} from '../../../src/store/place-jobs.js';
import { readJob } from '../../../src/store/read-job.js';
import { TENANT, TestShard } from './test-shard.js';

let shard: TestShard;
let term: TermKey;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  term = await shard.lead();
});
afterAll(() => close());

/** Sends the job through every place and back. */
async function goRound(id: string, fence: number): Promise<void> {
  await shard.claim(term, [id], fence);
  await shard.fail(term, id, fence);
  await redriveJobs(shard.hot, term, TENANT, [id], Date.now());
  await postponeJobs(shard.hot, term, [{ ...unchanged(id), admitAt: Date.now(), held: true }]);
  await admitJobs(shard.hot, term, [unchanged(id)]);
}

it('a job is found in exactly one place at every moment, however it moves', async () => {
  const { rows } = await shard.pool.query(`SELECT punctual.submit_job($1, '{"task":"greet"}') AS id`, [
    TENANT,
  ]);
  const id = rows[0].id as string;
  let moving = true;
  const places = new Set<string>();
  const readers = Array.from({ length: 3 }, async () => {
    let reads = 0;
    for (; moving; reads++) {
      const job = await readJob(shard.hot, TENANT, id);
      expect(job).not.toBeNull();
      places.add(job!.raw ? 'unread' : `${job!.place} ${job!.state}`);
    }
    return reads;
  });
  const lister = (async () => {
    while (moving) {
      const found = await listJobs(shard.reads, TENANT, {}, { rows: 10, bytes: 1_000_000 }, 100);
      expect(found.rows.map((job) => job.id)).toEqual([id]);
    }
  })();
  await expect.poll(() => places.has('unread')).toBe(true);
  const { row } = await shard.newJob();
  await parseLater(shard.hot, term, [{ row: { ...row, id }, admitAt: 0, held: false }]);
  await admitJobs(shard.hot, term, [unchanged(id)]);
  for (let fence = 1; fence <= 50; fence++) await goRound(id, fence);
  moving = false;
  for (const reads of await Promise.all(readers)) expect(reads).toBeGreaterThan(20);
  await lister;
  expect([...places].sort()).toEqual([
    'history failed',
    'later pending',
    'live pending',
    'live running',
    'unread',
  ]);
});

it('a job that has gone round keeps its attempts, its key and what was asked for', async () => {
  const asked = {
    key: 'round',
    priority: 8,
    payload: { a: [1, null] },
    requires: { region: 'eu' },
    concurrencyKey: 'customer-7',
    timeout: '30s',
    retry: { maxAttempts: 9, backoff: { base: '1s' }, onWorkerLost: { maxAttempts: 7 } },
  } as const;
  const id = await shard.submit(asked);
  const before = (await readJob(shard.hot, TENANT, id))!;
  await goRound(id, 1);
  const after = (await readJob(shard.hot, TENANT, id))!;
  expect(after).toEqual({
    ...before,
    attempts: 1,
    earlier_count: 1,
    run_at: after.run_at,
    late_by: after.late_by,
    earlier_attempts: [expect.objectContaining({ fence: 1, outcome: 'failed' })],
  });
});

it('a job of another tenant is not found', async () => {
  const id = await shard.submit();
  expect(await readJob(shard.hot, 'globex', id)).toBeNull();
  await shard.claim(term, [id]);
  await shard.finish(term, [{ id }]);
  expect(await readJob(shard.hot, 'globex', id)).toBeNull();
});
