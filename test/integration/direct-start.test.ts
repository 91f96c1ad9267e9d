import { setImmediate as nextIteration } from 'node:timers/promises';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { Job } from '../../src/core/job.js';
import { task } from '../../src/core/task.js';
import { Door, Happening } from '../happening.js';
import { nodeForTest } from '../node-for-tests.js';

const JOBS = 10;

it('a job that finds a worker waiting is stored and claimed in one transaction', async () => {
  const node = await nodeForTest();
  const started = new Happening<string>();
  const door = new Door();
  const wait = task('wait', {}, async (_: unknown, ctx) => {
    started.happen(ctx.jobId);
    await door.opened;
  });
  await node.work([wait], { slots: JOBS });
  const ids: string[] = [];
  for (let n = 0; n < JOBS; n++) {
    const job = await node.submit({ task: 'wait', payload: { n } });
    expect(job).toMatchObject({ state: 'pending', task: 'wait', payload: { n }, attempts: [] });
    ids.push(job.id);
    await started.times(n + 1);
  }
  const db = new pg.Client({ connectionString: node.database.url });
  await db.connect();
  onTestFinished(() => db.end());
  const { rows } = await db.query(
    `SELECT count(*) FILTER (WHERE j.xmin::text = c.xmin::text)::int AS together
     FROM punctual.jobs j JOIN punctual.claims c ON c.job = j.id`,
  );
  // The worker asks again a moment after it was given a job; whoever comes in that moment takes the ordinary way.
  expect(rows[0].together).toBeGreaterThanOrEqual(1);
  door.open();
  for (const id of ids) {
    expect(await node.ended(id)).toMatchObject({
      state: 'succeeded',
      attempt: 1,
      lateBy: expect.any(Number),
    });
  }
  expect(started.all).toEqual(ids);
  expect(await node.get('GET', '/v1/stats')).toMatchObject({
    jobsSubmitted: JOBS,
    jobsAssigned: JOBS,
    jobsCompleted: JOBS,
  });
});

it('a job for which no slot is free, or ahead of which others wait, takes its turn', async () => {
  const node = await nodeForTest();
  const started = new Happening<number>();
  const door = new Door();
  const wait = task('wait', {}, async ({ n }: { n: number }) => {
    started.happen(n);
    if (n === 0) await door.opened;
  });
  await node.work([wait], { slots: 1 });
  const jobs = [await node.submit({ task: 'wait', payload: { n: 0 } })];
  await started.times(1);
  for (const n of [1, 2, 3]) jobs.push(await node.submit({ task: 'wait', payload: { n } }));
  door.open();
  for (const { id } of jobs) expect(await node.ended(id)).toMatchObject({ state: 'succeeded' });
  expect(started.all).toEqual([0, 1, 2, 3]);
});

it('limits hold for jobs that come one at a time', async () => {
  const node = await nodeForTest();
  await node.get('PATCH', '/v1/queues/narrow', { body: { concurrency: 1 } });
  const started = new Happening<string>();
  const door = new Door();
  const wait = task('wait', {}, async (_: unknown, ctx) => {
    started.happen(ctx.jobId);
    await door.opened;
  });
  await node.work([wait], { slots: 5, queues: ['narrow'] });
  const first = await node.submit({ task: 'wait', queue: 'narrow' });
  await started.times(1);
  const second = await node.submit({ task: 'wait', queue: 'narrow' });
  expect(await node.get('GET', `/v1/jobs/${second.id}/why`)).toMatchObject({ gate: 'limit' });
  door.open();
  await node.ended(first.id);
  await node.ended(second.id);
  expect(started.all).toEqual([first.id, second.id]);
});

it('single jobs that come faster than claims are made all start at once', async () => {
  const node = await nodeForTest();
  const ended = new Happening<string>();
  const quick = task('quick', {}, async (_: unknown, ctx) => ended.happen(ctx.jobId));
  await node.work([quick], { slots: 50 });
  const JOBS_AT_ONCE = 400;
  const submitted: Promise<unknown>[] = [];
  for (let n = 0; n < JOBS_AT_ONCE; n++) {
    submitted.push(node.submit({ task: 'quick' }));
    await nextIteration();
  }
  await Promise.all(submitted);
  await ended.times(JOBS_AT_ONCE);
  const { data } = await node.get<{ data: Job[] }>('GET', '/v1/jobs?limit=1000');
  expect(data).toHaveLength(JOBS_AT_ONCE);
  // A job that was claimed for a request that others had answered would wait for two heartbeats: six seconds.
  expect(Math.max(...data.map((job) => job.lateBy ?? 0))).toBeLessThan(4_000);
});
