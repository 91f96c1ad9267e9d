import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { ApiClient, type ApiClientOptions } from './api-client.js';

const opened: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const close of opened.splice(0)) await close();
});

type Answer = (request: IncomingMessage & { text: string }, response: ServerResponse, count: number) => void;

/** A node that answers as told; counts the requests it saw. */
async function serve(answer: Answer): Promise<{ url: string; seen: (IncomingMessage & { text: string })[] }> {
  const seen: (IncomingMessage & { text: string })[] = [];
  const server: Server = createServer(async (request, response) => {
    let text = '';
    for await (const piece of request) text += piece;
    const whole = Object.assign(request, { text });
    seen.push(whole);
    answer(whole, response, seen.length);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  opened.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

/** An address where nobody listens any more. */
async function deadUrl(): Promise<string> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}`;
}

function clientOf(urls: string[], options: Partial<ApiClientOptions> = {}): ApiClient {
  const client = new ApiClient({ urls, apiKey: 'secret', ...options });
  opened.push(() => client.close());
  return client;
}

function json(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

describe('a request', () => {
  it('carries key, tenant and JSON, and gives the JSON of the answer', async () => {
    const node = await serve((_, response) => json(response, 201, { id: 'x' }));
    const client = clientOf([`${node.url}/base/`], { tenant: 'acme' });
    expect(await client.request('POST', '/v1/jobs', { body: { task: 'a' } })).toEqual({ id: 'x' });
    const [request] = node.seen;
    expect(request).toMatchObject({ method: 'POST', url: '/base/v1/jobs', text: '{"task":"a"}' });
    expect(request!.headers).toMatchObject({
      authorization: 'Bearer secret',
      'punctual-tenant': 'acme',
      'content-type': 'application/json',
    });
  });

  it('gives text as text and nothing as undefined', async () => {
    const node = await serve((request, response) => {
      if (request.url === '/metrics') response.writeHead(200, { 'content-type': 'text/plain' }).end('up 1\n');
      else response.writeHead(204).end();
    });
    const client = clientOf([node.url]);
    expect(await client.request('GET', '/metrics')).toBe('up 1\n');
    expect(await client.request('DELETE', '/v1/workers/x')).toBeUndefined();
  });

  it('rejects with the code, the fields and the waiting time of a problem', async () => {
    const node = await serve((_, response) =>
      json(
        response,
        422,
        { code: 'INVALID_REQUEST', detail: 'no', errors: [{ pointer: '/task', detail: 'is required' }] },
        { 'retry-after': '7' },
      ),
    );
    await expect(clientOf([node.url]).request('POST', '/v1/jobs', { body: {} })).rejects.toMatchObject({
      name: 'PunctualError',
      code: 'INVALID_REQUEST',
      message: 'no',
      errors: [{ pointer: '/task', detail: 'is required' }],
      retryAfter: 7,
    });
  });

  it('rejects with INTERNAL and the title for a code it does not know', async () => {
    const node = await serve((_, response) =>
      json(response, 409, { code: 'FROM_THE_FUTURE', title: 'Too early', detail: 'come back' }),
    );
    await expect(clientOf([node.url]).request('GET', '/v1/jobs')).rejects.toMatchObject({
      code: 'INTERNAL',
      message: 'Too early: come back',
    });
  });

  it('understands the status of an answer that is not ours', async () => {
    const node = await serve((_, response) => response.writeHead(401).end('<html>'));
    await expect(clientOf([node.url]).request('GET', '/v1/jobs')).rejects.toMatchObject({
      code: 'UNAUTHENTICATED',
    });
  });

  it('that cannot reach anybody says where it tried and what to do', async () => {
    const url = await deadUrl();
    const client = clientOf([url], { retryForMs: 50 });
    await expect(client.request('GET', '/v1/jobs')).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringMatching(new RegExp(`${url}.*punctual up`)),
    });
  });

  it('that cannot reach any of several nodes names them all, however short its time was', async () => {
    const urls = [await deadUrl(), await deadUrl(), await deadUrl()];
    const client = clientOf(urls, { retryForMs: 0 });
    const error = await client.request('POST', '/v1/jobs', { body: {} }).catch((thrown: Error) => thrown);
    expect(error).toMatchObject({ code: 'UNREACHABLE', sent: false });
    for (const url of urls) expect((error as Error).message).toContain(`${url} (connect ECONNREFUSED`);
  });

  it('goes to the next node when one is down, even if it must not be made twice', async () => {
    const node = await serve((_, response) => json(response, 201, { ok: true }));
    const client = clientOf([await deadUrl(), node.url]);
    expect(await client.request('POST', '/v1/jobs', { body: {} })).toEqual({ ok: true });
    expect(await client.request('POST', '/v1/jobs', { body: {} })).toEqual({ ok: true });
    expect(node.seen).toHaveLength(2);
  });

  it('that may be repeated is repeated on 503 and after a lost answer', async () => {
    const node = await serve((request, response, count) => {
      if (count === 1) json(response, 503, { code: 'NO_LEADER', detail: 'wait' });
      else if (count === 2) request.socket.destroy();
      else json(response, 200, { done: true });
    });
    const client = clientOf([node.url]);
    expect(await client.request('POST', '/v1/jobs', { body: { key: 'k' }, retry: true })).toEqual({
      done: true,
    });
    expect(node.seen).toHaveLength(3);
  });

  it('that a node refused because it stops is made at the next one, even if it must not be made twice', async () => {
    const stopping = await serve((_, response) => json(response, 503, { code: 'SHUTTING_DOWN' }));
    const next = await serve((_, response) => json(response, 201, { id: 'x' }));
    const client = clientOf([stopping.url, next.url]);
    expect(await client.request('POST', '/v1/jobs', { body: {} })).toEqual({ id: 'x' });
    expect([stopping.seen.length, next.seen.length]).toEqual([1, 1]);
  });

  it('that must not be made twice is made once, whatever becomes of its answer', async () => {
    const lost = await serve((request) => request.socket.destroy());
    await expect(clientOf([lost.url]).request('POST', '/v1/jobs', { body: {} })).rejects.toMatchObject({
      code: 'UNREACHABLE',
      sent: true,
    });
    expect(lost.seen).toHaveLength(1);
    const busy = await serve((_, response) => json(response, 503, { code: 'NO_LEADER' }));
    await expect(clientOf([busy.url]).request('POST', '/v1/jobs', { body: {} })).rejects.toMatchObject({
      code: 'NO_LEADER',
    });
    expect(busy.seen).toHaveLength(1);
  });

  it('that may have been carried out says so, even if the last try reached nobody', async () => {
    const lost = await serve((request) => request.socket.destroy());
    const once = clientOf([lost.url]).request('POST', '/v1/jobs', { body: {} });
    await expect(once).rejects.toMatchObject({
      message: expect.stringMatching(/^No answer from .*not known whether .* could take effect twice/),
    });
    const client = clientOf([lost.url, await deadUrl()], { retryForMs: 0 });
    const keyed = client.request('POST', '/v1/jobs', { body: { key: 'k' }, retry: true });
    await expect(keyed).rejects.toMatchObject({
      code: 'UNREACHABLE',
      sent: true,
      message: expect.stringMatching(/not known whether .* safe to repeat it .* the same key/),
    });
    const leaderless = await serve((request, response, count) => {
      if (count === 1) request.socket.destroy();
      else json(response, 503, { code: 'NO_LEADER', detail: 'wait.' });
    });
    const waited = clientOf([leaderless.url], { retryForMs: 30 });
    await expect(waited.request('POST', '/v1/jobs', { body: {}, retry: true })).rejects.toMatchObject({
      code: 'NO_LEADER',
      message: expect.stringMatching(/wait\. The answer to an earlier try was lost\..* safe to repeat/),
    });
    // Nothing depends on whether a read was carried out.
    await expect(clientOf([lost.url], { retryForMs: 0 }).request('GET', '/v1/jobs')).rejects.toMatchObject({
      message: expect.stringContaining('cannot be reached'),
    });
  });

  it('after close() is refused and says so', async () => {
    const node = await serve((_, response) => json(response, 200, {}));
    const client = clientOf([node.url]);
    await client.close();
    for (const retry of [true, false]) {
      await expect(client.request('POST', '/v1/jobs', { body: {}, retry })).rejects.toMatchObject({
        code: 'CONFIGURATION',
        message: expect.stringContaining('close()'),
      });
    }
    expect(node.seen).toHaveLength(0);
  });

  it('ends when its time is up, and with the caller’s reason when the caller gives up', async () => {
    const node = await serve(() => undefined);
    const client = clientOf([node.url], { retryForMs: 0 });
    await expect(client.request('GET', '/v1/jobs', { timeoutMs: 30 })).rejects.toMatchObject({
      code: 'UNREACHABLE',
      message: expect.stringContaining('no answer in time'),
    });
    const reason = new Error('changed my mind');
    const controller = new AbortController();
    const pending = client.request('GET', '/v1/jobs', { signal: controller.signal });
    await expect.poll(() => node.seen.length).toBe(2);
    controller.abort(reason);
    await expect(pending).rejects.toBe(reason);
    await expect(client.request('GET', '/v1/jobs', { signal: controller.signal })).rejects.toBe(reason);
  });

  it('is not held up by long polls', async () => {
    const node = await serve((request, response) => {
      if (request.url === '/quick') json(response, 200, 'here');
    });
    const client = clientOf([node.url]);
    const controller = new AbortController();
    const polls = Array.from({ length: 100 }, () =>
      client.request('GET', '/slow', { longPoll: true, signal: controller.signal }).catch(() => 'ended'),
    );
    await expect.poll(() => node.seen.length).toBe(100);
    expect(await client.request('GET', '/quick')).toBe('here');
    controller.abort();
    expect(new Set(await Promise.all(polls))).toEqual(new Set(['ended']));
  });

  it('cannot be made to an address that is none', () => {
    expect(() => new ApiClient({ urls: ['localhost:8080'], apiKey: 'k' })).toThrow(
      /not the address of a node/,
    );
    expect(() => new ApiClient({ urls: [], apiKey: 'k' })).toThrow(/at least one URL/);
  });
});
