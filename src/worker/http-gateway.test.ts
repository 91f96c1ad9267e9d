import { describe, expect, it, onTestFinished } from 'vitest';
import { serve } from '../../test/memory-node.js';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import { task } from '../core/task.js';
import { HttpTransport } from '../transport/http-transport.js';
import { HttpWorkerGateway } from './http-gateway.js';
import { HandlerRunner } from './runners/handler.js';
import { WorkerRuntime } from './worker-runtime.js';

function workerFor(urls: string[]) {
  const transport = new HttpTransport({ urls, apiKey: 'the-key' });
  const telling = task('telling', async (input: number, { log, progress }) => {
    log('here');
    await progress(0.5, 'half');
    return input + 1;
  });
  const worker = new WorkerRuntime({
    gateway: new HttpWorkerGateway(transport),
    runners: [new HandlerRunner([telling])],
  });
  onTestFinished(async () => {
    await worker.stop();
    await transport.close();
  });
  return worker;
}

describe('a worker over HTTP', () => {
  it('works with its key, and tells about an attempt with the token of that attempt', async () => {
    const scheduler = new MemoryScheduler();
    const node = await serve(scheduler);
    const job = scheduler.submit('telling', 1);
    const worker = workerFor([node.url]);
    await worker.start();
    expect(await scheduler.resultOf(job)).toMatchObject({ outcome: 'succeeded', result: 2 });
    await scheduler.until(() => scheduler.heartbeats.length > 0);
    expect(scheduler.logs).toMatchObject([{ level: 'info', message: 'here' }]);
    expect(scheduler.progressReports).toEqual([{ fence: 1, progress: 0.5, message: 'half' }]);
    await worker.drain();
    expect(scheduler.left).toEqual(['worker-1']);
    expect(new Set(node.authorizations)).toEqual(
      new Set([
        'workers Bearer the-key',
        'heartbeat Bearer the-key',
        'claim Bearer the-key',
        'report Bearer the-key',
        'worker-1 Bearer the-key',
        `logs Bearer ${job.token}`,
        `progress Bearer ${job.token}`,
      ]),
    );
  });

  it('names the shard of its session in everything that it says there', async () => {
    const scheduler = new MemoryScheduler();
    scheduler.shard = 3;
    const node = await serve(scheduler);
    const job = scheduler.submit('telling', 1);
    const worker = workerFor([node.url]);
    await worker.start();
    expect(await scheduler.resultOf(job)).toMatchObject({ outcome: 'succeeded' });
    await scheduler.until(() => scheduler.heartbeats.length > 0);
    await worker.drain();
    expect(scheduler.left).toEqual(['worker-1']);
  });

  it('goes on with another node when its node dies, and keeps its session', async () => {
    const scheduler = new MemoryScheduler();
    const first = await serve(scheduler);
    const second = await serve(scheduler);
    const worker = workerFor([first.url, second.url]);
    await worker.start();
    await scheduler.until(() => scheduler.claimSizes.length > 0);
    first.kill();
    const job = scheduler.submit('telling', 5);
    // The claim that died with its node may have taken the job with it; a scheduler offers it again.
    await scheduler.until(() => second.authorizations.some((each) => each.startsWith('claim')));
    scheduler.offer(job);
    expect(await scheduler.resultOf(job)).toMatchObject({ result: 6 });
    expect(scheduler.registrations).toHaveLength(1);
  });

  it('finds the node that lives behind addresses where nobody answers', async () => {
    const scheduler = new MemoryScheduler();
    const dead = await serve(scheduler);
    const living = await serve(scheduler);
    dead.kill();
    const worker = workerFor([dead.url, living.url]);
    const job = scheduler.submit('telling', 7);
    await worker.start();
    expect(await scheduler.resultOf(job)).toMatchObject({ result: 8 });
  });

  it('leaves a node that hangs as soon as a heartbeat finds out, with its claim and its reports', async () => {
    const scheduler = new MemoryScheduler();
    const hanging = await serve(scheduler);
    const living = await serve(scheduler);
    const worker = workerFor([hanging.url, living.url]);
    await worker.start();
    await scheduler.until(() => scheduler.heartbeats.length > 0 && scheduler.claimSizes.length > 0);
    hanging.hangs = true;
    const begin = performance.now();
    await scheduler.until(() => living.authorizations.some((each) => each.startsWith('claim')));
    const job = scheduler.submit('telling', 1);
    // The claim at the node that hangs took the job with it; a scheduler offers it again.
    scheduler.offer(job);
    expect(await scheduler.resultOf(job)).toMatchObject({ result: 2 });
    expect(performance.now() - begin).toBeLessThan(10_000);
    expect(scheduler.registrations).toHaveLength(1);
  }, 15_000);
});
