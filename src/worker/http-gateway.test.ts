import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { MemoryScheduler } from '../../test/memory-scheduler.js';
import { asPunctualError } from './failure.js';
import { HttpWorkerGateway } from './http-gateway.js';
import { HttpTransport } from './http-transport.js';
import { HandlerRunner } from './runners/handler.js';
import { task } from './task.js';
import { WorkerRuntime } from './worker-runtime.js';

const opened: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

interface Served {
  readonly url: string;
  readonly server: Server;
  readonly authorizations: string[];
  kill(): void;
}

/** Puts the worker's side of the HTTP API in front of a scheduler in memory, as a node does. */
async function serve(scheduler: MemoryScheduler): Promise<Served> {
  const authorizations: string[] = [];
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    const ended = new AbortController();
    response.on('close', () => ended.abort());
    authorizations.push(`${request.url!.split('/').at(-1)} ${request.headers.authorization}`);
    try {
      const body = text === '' ? undefined : JSON.parse(text);
      const answer = await route(scheduler, request.method!, request.url!, body, ended.signal);
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer ?? null));
    } catch (thrown) {
      const { status, code, message } = asPunctualError(thrown);
      response.writeHead(status, { 'content-type': 'application/problem+json' });
      response.end(JSON.stringify({ code, detail: message }));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const kill = () => {
    server.close();
    server.closeAllConnections();
  };
  opened.push(kill);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, authorizations, kill };
}

async function route(
  scheduler: MemoryScheduler,
  method: string,
  url: string,
  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever was sent.
  body: any,
  signal: AbortSignal,
): Promise<unknown> {
  const [, , noun, id = '', verb = ''] = url.split('/');
  if (method === 'DELETE') return scheduler.leave(id);
  if (noun === 'workers' && id === '') return scheduler.register(body);
  if (verb === 'heartbeat') return scheduler.heartbeat(id, body);
  if (verb === 'claim') return scheduler.claim(id, body, signal);
  if (verb === 'report') return scheduler.report(id, body);
  if (verb === 'progress') return scheduler.progress(id, '', body);
  return scheduler.log(id, '', body);
}

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
  opened.push(() => transport.close());
  opened.push(() => worker.stop());
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
});
