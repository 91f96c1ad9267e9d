import { describe, expect, it, onTestFinished } from 'vitest';
import type { PunctualError } from '../../../src/core/errors.js';
import { task } from '../../../src/core/task.js';
import type { TaskView } from '../../../src/core/wire.js';
import { startNode } from '../../../src/node/embed.js';
import { createTestDatabase } from '../../database.js';
import { nodeForTest } from '../../node-for-tests.js';

const greet = (attempts: number) =>
  task(
    'greet',
    { retry: { maxAttempts: attempts }, timeout: '2m', requires: { region: 'eu' } },
    () => 'hello',
  );
const plain = task('plain', () => 'plain');

describe('a worker that publishes', () => {
  it('defines its tasks before it is registered, so that jobs by name take what its code says', async () => {
    const node = await nodeForTest();
    await node.work([greet(7), plain], { publish: true, name: 'w1', labels: { region: 'eu' } });
    expect(await node.get('GET', '/v1/tasks/greet')).toMatchObject({
      ...{ retry: { maxAttempts: 7 }, timeout: '2m', requires: { region: 'eu' } },
      ...{ publishedBy: 'w1', changedBy: 'tester', version: 1 },
    });
    expect(await node.get('GET', '/v1/tasks/plain')).toMatchObject({ publishedBy: 'w1' });
    const job = await node.submit({ task: 'greet' });
    expect(job).toMatchObject({ maxAttempts: 7, timeout: '2m' });
    expect(await node.ended(job.id)).toMatchObject({ state: 'succeeded', result: 'hello' });
  });

  it('changes what an earlier worker has published, and writes nothing where nothing has changed', async () => {
    const node = await nodeForTest();
    await node.work([greet(3)], { publish: true, name: 'w1' });
    await node.work([greet(3)], { publish: true, name: 'w2' });
    expect(await node.get('GET', '/v1/tasks/greet')).toMatchObject({ publishedBy: 'w1', version: 1 });
    await node.work([greet(5)], { publish: true, name: 'w3' });
    expect(await node.get('GET', '/v1/tasks/greet')).toMatchObject({
      ...{ publishedBy: 'w3', version: 2, retry: { maxAttempts: 5 } },
    });
  });

  it('does not replace what a person has defined, and warns, unless it is told to', async () => {
    const node = await nodeForTest();
    await node.get('POST', '/v1/tasks', { body: { name: 'greet', queue: 'mine' } });
    const warnings: PunctualError[] = [];
    const events = { onWarning: (warning: PunctualError) => void warnings.push(warning) };
    await node.work([greet(3), plain], { publish: true, events, log: false });
    expect(warnings).toMatchObject([{ code: 'TASK_DEFINED' }]);
    expect(await node.get('GET', '/v1/tasks/greet')).toMatchObject({ queue: 'mine', publishedBy: null });
    // The others are published all the same.
    await node.get('GET', '/v1/tasks/plain');
    await node.work([greet(3)], { publish: 'overwrite', name: 'w2' });
    const overwritten = await node.get<TaskView>('GET', '/v1/tasks/greet');
    expect(overwritten).toMatchObject({ publishedBy: 'w2', retry: { maxAttempts: 3 } });
    expect(overwritten.queue).toBeUndefined();
  });

  it('warns about a task whose options the nodes refuse, and publishes the others', async () => {
    const node = await nodeForTest();
    const warnings: PunctualError[] = [];
    const events = { onWarning: (warning: PunctualError) => void warnings.push(warning) };
    const slow = task('slow', { timeout: '3h' }, () => 'slow');
    await node.work([slow, plain], { publish: true, events, log: false });
    expect(warnings).toMatchObject([{ code: 'INVALID_REQUEST' }]);
    expect(warnings[0]!.message).toMatch(/^The options of task slow are not published: .*timeout: /);
    expect(await node.get('GET', '/v1/tasks')).toMatchObject({ data: [{ name: 'plain' }] });
    expect(await node.ended((await node.submit({ task: 'slow' })).id)).toMatchObject({ result: 'slow' });
  });

  it('leaves to a person what that person has changed or said in the same words', async () => {
    const node = await nodeForTest();
    await node.work([greet(3)], { publish: true, name: 'w1' });
    await node.get('PATCH', '/v1/tasks/greet', { body: { timeout: '3m' } });
    expect(await node.get('GET', '/v1/tasks/greet')).toMatchObject({ publishedBy: null, timeout: '3m' });
    await node.work([plain], { publish: true, name: 'w1' });
    await node.get('POST', '/v1/tasks', { body: { name: 'plain' } });
    expect(await node.get('GET', '/v1/tasks/plain')).toMatchObject({ publishedBy: null, version: 2 });
    await node.work([plain], { publish: true, name: 'w2' });
    expect(await node.get('GET', '/v1/tasks/plain')).toMatchObject({ publishedBy: null, version: 2 });
  });

  it('does nothing of that by default', async () => {
    const node = await nodeForTest();
    await node.work([greet(3)]);
    expect(await node.get('GET', '/v1/tasks')).toMatchObject({ data: [] });
  });
});

it('a worker inside a node publishes, too', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const node = await startNode({ databaseUrl: database.url });
  onTestFinished(() => node.stop());
  const worker = node.punctual.worker([greet(9)], { publish: true, name: 'inside', log: false });
  await worker.start();
  onTestFinished(() => worker.stop());
  expect(await node.punctual.tasks.get('greet')).toMatchObject({ publishedBy: 'inside' });
  const job = await node.punctual.submit('greet');
  expect(await job.get()).toMatchObject({ maxAttempts: 9 });
});

it('a program defines, lists, changes and deletes tasks', async () => {
  const node = await nodeForTest();
  const { tasks } = node.connect();
  expect(await tasks.define(greet(6), { queue: 'mail' })).toMatchObject({
    ...{ name: 'greet', retry: { maxAttempts: 6 }, queue: 'mail', publishedBy: null },
  });
  await tasks.define('other', { concurrencyKey: { path: 'id' } });
  const names: string[] = [];
  for await (const { name } of tasks.list({ pageSize: 1 })) names.push(name);
  expect(names).toEqual(['greet', 'other']);
  expect(await tasks.change('greet', { queue: null, priority: 2 })).toMatchObject({ priority: 2 });
  expect(await tasks.get('greet')).not.toHaveProperty('queue');
  expect(await node.submit({ task: 'greet' })).toMatchObject({ priority: 2, maxAttempts: 6 });
  await tasks.delete('greet');
  await expect(tasks.get('greet')).rejects.toMatchObject({ code: 'TASK_NOT_FOUND' });
});
