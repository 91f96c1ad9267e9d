import { expect, it } from 'vitest';
import { task } from '../../src/core/task.js';
import type { FencedJob } from '../../src/core/wire.js';
import { Happening } from '../happening.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

const leave = (node: TestNode, id: string, body?: unknown) =>
  node.ask('DELETE', `/v1/workers/${id}`, body === undefined ? {} : { body });

it('an at-most-once job runs once, whoever ends the session of its worker before a heartbeat has listed it', async () => {
  const node = await nodeForTest({ settings: { heartbeatInterval: '30s', workerTimeout: '90s' } });
  const started = new Happening<number>();
  const endless = task('endless', (_: null, { fence }) => {
    started.happen(fence);
    return new Promise(() => undefined);
  });
  const worker = await node.work([endless]);
  const once = await node.submit({ task: 'endless', delivery: 'at-most-once' });
  const again = await node.submit({ task: 'endless' });
  await started.times(2);
  expect((await leave(node, worker.status().workerId)).status).toBe(204);
  expect(await node.ended(once.id)).toMatchObject({
    state: 'failed',
    error: { code: 'LOST' },
    attempts: [{ fence: 1, outcome: 'lost' }],
  });
  // The other one may be started again, and says that it was, and why.
  await expect
    .poll(async () => (await node.job(again.id)).attempts[0], { timeout: 10_000 })
    .toMatchObject({ fence: 1, outcome: 'lost', error: { code: 'LOST' } });
});

it('what a worker never received waits again when it says so as it leaves, and every fence is on record', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work', delivery: 'at-most-once' });
  expect(await worker.claimSilently()).toHaveLength(1);
  expect((await leave(node, worker.id, { settled: true })).status).toBe(204);
  const other = await ProtocolWorker.register(node);
  expect(await other.claim()).toMatchObject([{ jobId: id, fence: 2 }]);
  expect((await node.job(id)).attempts).toMatchObject([
    { fence: 1, worker: worker.id, outcome: 'lost', error: { code: 'NEVER_STARTED' }, startedAt: null },
    { fence: 2, worker: other.id, outcome: null },
  ]);
});

it('what a worker has shown to hold is lost with it, whatever it says as it leaves', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work', delivery: 'at-most-once' });
  await worker.claimOne();
  expect((await leave(node, worker.id, { settled: true })).status).toBe(204);
  expect(await node.ended(id)).toMatchObject({ state: 'failed', error: { code: 'LOST' } });
});

it('a worker leaves with a word that is understood, or not at all', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node);
  expect(await leave(node, worker.id, { settled: 'yes' })).toMatchObject({
    status: 422,
    body: { errors: [{ pointer: '/settled' }] },
  });
  expect((await leave(node, worker.id, {})).status).toBe(204);
});

it('an attempt that was taken back because it never arrived is on record', async () => {
  const clock = new TestClock();
  const settings = { heartbeatInterval: '1s', workerTimeout: '4s' };
  const node = await nodeForTest({ clock, settings });
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work', delivery: 'at-most-once' });
  await worker.claimSilently();
  let stop: readonly FencedJob[] = [];
  for (let seconds = 0; seconds < 12 && stop.length === 0; seconds += 1) {
    clock.advance(1_000);
    stop = (await worker.heartbeat([])).stop;
    if (seconds === 3) await worker.claimSilently(1, '10ms');
  }
  expect(stop).toEqual([{ jobId: id, fence: 1 }]);
  const refusal = { epoch: worker.welcome.epoch, running: [], refused: stop };
  await node.get('POST', `/v1/workers/${worker.id}/heartbeat`, { body: refusal });
  expect(await worker.claimOne()).toMatchObject({ jobId: id, fence: 2 });
  expect((await node.job(id)).attempts).toMatchObject([
    { fence: 1, worker: worker.id, outcome: 'lost', error: { code: 'NEVER_STARTED' } },
    { fence: 2, outcome: null },
  ]);
});
