import { setTimeout as pause } from 'node:timers/promises';
import { expect, it, onTestFinished, vi } from 'vitest';
import { task } from '../../src/core/task.js';
import { countStatements } from '../count-statements.js';
import { createTestDatabase } from '../database.js';
import { Happening } from '../happening.js';
import { nodeForTest } from '../node-for-tests.js';

const sum = (counts: Map<string, number>) => [...counts.values()].reduce((a, b) => a + b, 0);

it('jobs cost a share of a statement each, not a round trip', async () => {
  const JOBS = 3_000;
  const node = await nodeForTest();
  const ran = new Happening<number>();
  const count = task('count', {}, async ({ n }: { n: number }) => ran.happen(n));
  await node.work([count], { slots: 500 });
  const counts = countStatements();
  await node.connect().submitMany(
    count,
    Array.from({ length: JOBS }, (_, n) => ({ n })),
  );
  await ran.times(JOBS);
  await vi.waitFor(async () => {
    const { jobsCompleted } = await node.get<{ jobsCompleted: number }>('GET', '/v1/stats');
    expect(jobsCompleted).toBe(JOBS);
  });
  const perJob = (name: string) => (counts.get(name) ?? 0) / JOBS;
  expect(perJob('insert-jobs')).toBeLessThan(0.01);
  // Claims and ends are as large as a worker's slots and reports let them be.
  expect(perJob('claim-jobs')).toBeLessThan(0.1);
  expect(perJob('finish-jobs')).toBeLessThan(0.1);
  expect(sum(counts) / JOBS).toBeLessThan(0.25);
});

it('a single job costs three statements at most, from its submission to its end', async () => {
  const node = await nodeForTest();
  const ran = new Happening<void>();
  const count = task('count', {}, async () => ran.happen());
  await node.work([count], { slots: 10 });
  await node.submit({ task: 'count' });
  await ran.times(1);
  const counts = countStatements();
  for (let n = 1; n <= 20; n++) {
    await node.submit({ task: 'count' });
    await ran.times(n + 1);
  }
  const jobStatements = [
    'insert-jobs',
    'insert-varied-jobs',
    'submit-and-claim',
    'claim-jobs',
    'finish-jobs',
    'read-job',
  ];
  const spent = jobStatements.reduce((total, name) => total + (counts.get(name) ?? 0), 0);
  expect(spent).toBeLessThanOrEqual(20 * 3);
  expect(counts.get('read-job') ?? 0).toBe(0);
});

it('a key costs the statements that register it, and its repetition those that compare and read its job', async () => {
  const node = await nodeForTest();
  await node.submit({ task: 'count', key: 'first' });
  const counts = countStatements();
  const spentOn = async (body: Record<string, unknown>) => {
    counts.clear();
    await node.submit(body);
    const names = ['insert-keys', 'find-keys', 'find-holders', 'take-over-keys', 'renew-keys', 'read-job'];
    return Object.fromEntries(names.map((name) => [name, counts.get(name)]).filter(([, count]) => count));
  };
  const registered = { 'insert-keys': 1, 'find-keys': 1 };
  expect(await spentOn({ task: 'count', key: 'second' })).toEqual(registered);
  const repeated = await spentOn({ task: 'count', key: 'second', payload: 1 });
  expect(repeated).toEqual({ ...registered, 'find-holders': 1, 'read-job': 1 });
  counts.clear();
  await node.submit({ task: 'count' });
  expect(counts.get('insert-keys')).toBeUndefined();
});

it('with nothing to do, a node asks the database at most twice a second', async () => {
  const database = await createTestDatabase();
  const leader = await nodeForTest({ database });
  await nodeForTest({ database });
  onTestFinished(() => database.drop());
  await leader.work([task('count', {}, async () => undefined)]);
  // What a new leader does once is not what it does all the time.
  await pause(9_000);
  const counts = countStatements();
  const SECONDS = 6;
  await pause(SECONDS * 1_000);
  expect(sum(counts) / SECONDS / 2).toBeLessThanOrEqual(2);
});
