import { expect, it } from 'vitest';
import { task } from '../../../src/core/task.js';
import { Happening } from '../../happening.js';
import { nodeForTest } from '../../node-for-tests.js';

it('a program says at every start what it wants scheduled', async () => {
  const node = await nodeForTest();
  const done = new Happening<{ name: string }>();
  const greet = task('greet', { timeout: '1m', queue: 'greetings' }, (input: { name: string }) => {
    done.happen(input);
    return `Hello ${input.name}`;
  });
  const punctual = node.connect();
  const first = await punctual.schedule(greet, {
    every: '1s',
    input: { name: 'Ada' },
    jitter: '100ms',
    endAt: new Date(Date.UTC(2099, 0)),
  });
  expect(await first.get()).toMatchObject({
    name: 'greet',
    queue: 'greetings',
    timeout: '1m',
    every: '1s',
    jitter: '100ms',
    endAt: '2099-01-01T00:00:00.000Z',
  });
  await node.work([greet], { queues: ['greetings'] });
  await done.times(1);
  expect(done.all[0]).toEqual({ name: 'Ada' });

  // The same again changes nothing; something else takes its place, without what is no longer said.
  const same = { every: '1s', input: { name: 'Ada' }, jitter: '100ms' } as const;
  await punctual.schedule(greet, { ...same, endAt: '2099-01-01T00:00:00.000Z' });
  expect(await first.get()).toMatchObject({ version: 1 });
  const second = await punctual.schedule(greet, { cron: '0 0 1 1 *', input: { name: 'Eve' } });
  const changed = await second.get();
  expect(changed).toMatchObject({ version: 2, cron: '0 0 1 1 *', jitter: '0ms' });
  expect(changed).not.toHaveProperty('every');
  expect(changed).not.toHaveProperty('endAt');

  const run = await second.run();
  expect(await run.result()).toBe('Hello Eve');
  expect(await second.occurrences({ limit: 1 })).toMatchObject([{ reason: 'manual', jobId: run.id }]);
  expect(await second.pause()).toMatchObject({ paused: true });
  expect(await second.resume()).toMatchObject({ paused: false });
  const range = { from: new Date(Date.UTC(2024, 11, 31)), to: '2026-01-01T00:00:00Z', dryRun: true };
  expect(await second.backfill(range)).toMatchObject({ matched: 2, started: 0 });
  await second.delete();
  await expect(second.get()).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' });
});
