import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestFinished } from 'vitest';
import { asPunctualError } from '../src/core/errors.js';
import type { MemoryScheduler } from './memory-scheduler.js';

/** A node that takes requests over HTTP for a scheduler in memory. */
export interface MemoryNode {
  readonly url: string;
  /** The last part of each path with the credential that came along. */
  readonly authorizations: string[];
  /** While true, requests are taken and never answered, as by a process that hangs. */
  hangs: boolean;
  /** Ends all connections and takes no more. */
  kill(): void;
}

/** Puts the worker's side of the HTTP API in front of a scheduler in memory; it ends with the test. */
export async function serve(scheduler: MemoryScheduler): Promise<MemoryNode> {
  const server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    const ended = new AbortController();
    response.on('close', () => ended.abort());
    node.authorizations.push(`${request.url!.split('/').at(-1)} ${request.headers.authorization}`);
    if (node.hangs) return;
    try {
      const body = text === '' ? undefined : JSON.parse(text);
      const answer = await route(scheduler, request, body, ended.signal);
      if (node.hangs) return;
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer ?? null));
    } catch (thrown) {
      const { status, code, message } = asPunctualError(thrown);
      response.writeHead(status, { 'content-type': 'application/problem+json' });
      response.end(JSON.stringify({ code, detail: message }));
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const node: MemoryNode = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    authorizations: [],
    hangs: false,
    kill: () => {
      server.close();
      server.closeAllConnections();
    },
  };
  onTestFinished(() => node.kill());
  return node;
}

async function route(
  scheduler: MemoryScheduler,
  { method, url, headers }: IncomingMessage,
  // biome-ignore lint/suspicious/noExplicitAny: a body is whatever was sent.
  body: any,
  signal: AbortSignal,
): Promise<unknown> {
  const [, , noun, id = '', verb = ''] = url!.split('/');
  const session = { workerId: id, shard: Number(headers['punctual-shard']) };
  if (method === 'DELETE') return scheduler.leave(session, body);
  if (noun === 'workers' && id === '') return scheduler.register(body);
  if (verb === 'heartbeat') return scheduler.heartbeat(session, body);
  if (verb === 'claim') return scheduler.claim(session, body, signal);
  if (verb === 'report') return scheduler.report(session, body);
  if (verb === 'progress') return scheduler.progress(id, '', body);
  return scheduler.log(id, '', body);
}
