import { expect, it, onTestFinished } from 'vitest';
import type { StatsView } from '../../src/core/wire.js';
import { createTestDatabase } from '../database.js';
import { Happening } from '../happening.js';
import { nodeForTest } from '../node-for-tests.js';
import { countPlaces } from '../postgres-client.js';
import { VolumeWorker } from '../volume-worker.js';

/** Patience with a machine that has other things to do. */
const PATIENT = { timeout: 180_000 };

it(
  '100,000 bulk jobs pass through one worker process: all in history, nothing left behind',
  PATIENT,
  async () => {
    const total = 100_000;
    const node = await nodeForTest();
    const worker = new VolumeWorker(node, { slots: 1_000 });
    await worker.ready;
    const begin = performance.now();
    const punctual = node.connect();
    const handles = await punctual.submitMany('count', new Array(total).fill(null));
    expect(new Set(handles.map(({ id }) => id)).size).toBe(total);
    const counts = await worker.finished(total);
    const seconds = (performance.now() - begin) / 1_000;
    console.log(`${total} jobs in ${seconds.toFixed(1)} s: ${Math.round(total / seconds)} a second`);
    expect(counts).toEqual({ started: total, doubled: 0 });
    expect(await countPlaces(node.database.url)).toEqual({
      live: 0,
      later: 0,
      claims: 0,
      keys: 0,
      history: total,
    });
    expect(await node.get<StatsView>('GET', '/v1/stats')).toMatchObject({
      jobsSubmitted: total,
      jobsAssigned: total,
      jobsCompleted: total,
      jobsFailed: 0,
      jobsRetried: 0,
      jobsRequeued: 0,
      staleCompletions: 0,
    });
  },
);

it('with hints off, 10,000 jobs submitted through another node start within 5 s', PATIENT, async () => {
  const total = 10_000;
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const leader = await nodeForTest({ database, settings: { hints: false } });
  const elsewhere = await nodeForTest({ database, settings: { hints: false } });
  const worker = new VolumeWorker(leader, { slots: 1_000 });
  await worker.ready;
  const jobs = new Array(total).fill({ task: 'count' });
  let quickestMs = Number.POSITIVE_INFINITY;
  // The machine may be busy with other things for once, but not again and again.
  for (let round = 1; round <= 3 && quickestMs > 5_000; round++) {
    expect((await elsewhere.ask('POST', '/v1/jobs/bulk', { body: { jobs } })).status).toBe(201);
    const stored = performance.now();
    await worker.started(round * total);
    quickestMs = Math.min(quickestMs, performance.now() - stored);
    expect(await worker.finished(round * total)).toEqual({ started: round * total, doubled: 0 });
  }
  expect(quickestMs).toBeLessThan(5_000);
});

it('1,000 jobs due at random milliseconds all start on time, none early', PATIENT, async () => {
  const node = await nodeForTest();
  const starts = new Happening<{ readonly due: number; readonly at: number }>();
  const worker = new VolumeWorker(node, { slots: 200, onStart: starts.happen });
  await worker.ready;
  const begin = Date.now() + 1_000;
  const moments = Array.from({ length: 1_000 }, () => begin + Math.floor(Math.random() * 5_000));
  await node.get('POST', '/v1/jobs/bulk', {
    body: {
      jobs: moments.map((due) => ({ task: 'moment', payload: due, runAt: new Date(due).toISOString() })),
    },
  });
  await starts.times(moments.length);
  const lateness = starts.all.map(({ due, at }) => at - due).sort((a, b) => a - b);
  const share = (part: number) => lateness[Math.ceil(lateness.length * part) - 1]!;
  console.log(`late by p50 ${share(0.5)} ms, p99 ${share(0.99)} ms, at most ${share(1)} ms`);
  expect(lateness[0]).toBeGreaterThanOrEqual(0);
  expect(share(0.99)).toBeLessThan(500);
  expect(starts.all.map(({ due }) => due).sort()).toEqual(moments.sort());
});
