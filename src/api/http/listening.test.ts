import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { Agent, request } from 'undici';
import { afterEach, describe, expect, it } from 'vitest';
import { JOB_ID, OPERATOR_KEY, OTHER_ID, testServer } from './routes.fixture.js';

/** What only a real connection shows: limits, long-polls and the end of the server. */

const AUTHORIZED = { authorization: `Bearer ${OPERATOR_KEY}`, 'content-type': 'application/json' };
const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  await Promise.all(cleanups.splice(0).map((cleanup) => cleanup()));
});

async function listen(
  tune: (server: ReturnType<typeof testServer>['server']) => void = () => undefined,
  options: Parameters<typeof testServer>[2] = {},
) {
  const parts = testServer({}, {}, options);
  tune(parts.server);
  await parts.server.listen({ port: 0, host: '127.0.0.1' });
  const agent = new Agent({ keepAliveTimeout: 60_000 });
  cleanups.push(
    () => parts.server.close(),
    () => agent.destroy(),
  );
  const { port } = parts.server.server.address() as AddressInfo;
  return { ...parts, agent, port, url: `http://127.0.0.1:${port}` };
}

/** Sends raw bytes and gives back everything the server said until it hung up. */
async function raw(port: number, bytes: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.setEncoding('utf8');
  let said = '';
  socket.on('data', (chunk) => {
    said += chunk;
  });
  socket.write(bytes);
  await once(socket, 'close');
  return said;
}

describe('a body that is too large', () => {
  it.each([
    ['with a key', AUTHORIZED, 413, 'BODY_TOO_LARGE'],
    ['without a key', { 'content-type': 'application/json' }, 401, 'UNAUTHENTICATED'],
  ])('gets its answer through, although nobody reads it: %s', async (_, headers, status, code) => {
    const { url, agent } = await listen();
    const body = Buffer.alloc(20_000_000, ' ');
    for (let i = 0; i < 3; i++) {
      const answer = await request(`${url}/v1/jobs/bulk`, {
        method: 'POST',
        headers,
        body,
        dispatcher: agent,
      });
      expect(answer.statusCode).toBe(status);
      expect(await answer.body.json()).toMatchObject({ code });
    }
  });

  it('is cut off when its length is not known', async () => {
    const { port } = await listen();
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    const head = `POST /v1/jobs HTTP/1.1\r\nhost: a\r\nauthorization: ${AUTHORIZED.authorization}\r\n`;
    const said = await raw(
      port,
      `${head}content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${chunk}${chunk}`,
    );
    expect(said).toContain('413');
    expect(said).toContain('BODY_TOO_LARGE');
    expect(said.toLowerCase()).toContain('connection: close');
  });
});

describe('a refused request', () => {
  it.each(['/v1/queues', '/nowhere', '/%ff'])('does not cost its connection: GET %s', async (path) => {
    const { url, agent } = await listen();
    const { headers, body } = await request(`${url}${path}`, { dispatcher: agent });
    await body.dump();
    expect(headers.connection).toBe('keep-alive');
  });
});

describe('a request that is not one', () => {
  it.each([
    ['no HTTP', 'hello\r\n\r\n', 400, 'MALFORMED_REQUEST'],
    ['endless headers', `GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
    ['an endless path', `GET /${'y'.repeat(20_000)} HTTP/1.1\r\nhost: a\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
    ['very endless headers', `GET / HTTP/1.1\r\nx: ${'y'.repeat(2_000_000)}\r\n`, 431, 'HEADERS_TOO_LARGE'],
    ['no host', 'GET /livez HTTP/1.1\r\n\r\n', 400, 'MALFORMED_REQUEST'],
    [
      'no host, with a body',
      'POST /v1/jobs HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}',
      400,
      'MALFORMED_REQUEST',
    ],
    ['no such method', 'FROB / HTTP/1.1\r\nhost: a\r\n\r\n', 400, 'MALFORMED_REQUEST'],
    [
      'two lengths',
      'POST /v1/jobs HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n',
      400,
      'MALFORMED_REQUEST',
    ],
    [
      'a length that is none',
      'POST /v1/jobs HTTP/1.1\r\nhost: a\r\ncontent-length: x\r\n\r\n',
      400,
      'MALFORMED_REQUEST',
    ],
    ['HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 'MALFORMED_REQUEST'],
    ['a tunnel', 'CONNECT a:80 HTTP/1.1\r\nhost: a\r\n\r\n', 400, 'MALFORMED_REQUEST'],
    [
      'endless chunk extensions',
      `POST /v1/jobs HTTP/1.1\r\nhost: a\r\nauthorization: ${AUTHORIZED.authorization}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n2;${'y'.repeat(20_000)}\r\n{}\r\n`,
      413,
      'BODY_TOO_LARGE',
    ],
    [
      'a broken chunk',
      `POST /v1/jobs HTTP/1.1\r\nhost: a\r\nauthorization: ${AUTHORIZED.authorization}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n`,
      400,
      'MALFORMED_REQUEST',
    ],
  ])('is refused in our own words, and its connection ends: %s', async (_, bytes, status, code) => {
    const { port } = await listen();
    const said = await raw(port, bytes);
    expect(said).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    const [head, body] = said.split('\r\n\r\n') as [string, string];
    expect(head.toLowerCase()).toContain('content-type: application/problem+json');
    expect(head.toLowerCase()).toContain('connection: close');
    expect(JSON.parse(body)).toMatchObject({ code, status });
  });

  it('may expect what nobody knows', async () => {
    const { port } = await listen();
    const said = await raw(
      port,
      'GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\nexpect: wonders\r\n\r\n',
    );
    expect(said).toMatch(/^HTTP\/1.1 200 /);
  });

  it('is given up when it does not arrive in time', async () => {
    const { port } = await listen(({ server }) => {
      server.headersTimeout = 50;
    });
    const said = await raw(port, 'GET /livez HTTP/1.1\r\nhost: a\r\n');
    expect(said).toMatch(/^HTTP\/1.1 408 /);
    expect(said).toContain('REQUEST_TIMED_OUT');
  });

  it('is given up when its body does not arrive in time', async () => {
    const { port } = await listen(undefined, { bodyTimeoutMs: 50 });
    const head = `POST /v1/jobs HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${OPERATOR_KEY}\r\n`;
    const said = await raw(port, `${head}content-type: application/json\r\ncontent-length: 100\r\n\r\n{`);
    expect(said).toMatch(/^HTTP\/1.1 408 /);
    expect(said).toContain('REQUEST_TIMED_OUT');
  });
});

it('a request that expects what nobody knows is answered like any other', async () => {
  const { port } = await listen();
  const head = `POST /nowhere HTTP/1.1\r\nhost: a\r\nconnection: close\r\nexpect: miracles\r\n`;
  const said = await raw(port, `${head}content-length: 2\r\n\r\n{}`);
  expect(said).toMatch(/^HTTP\/1\.1 404 /);
  expect(said).toContain('application/problem+json');
});

describe('a call that waits', () => {
  const wait = (url: string, agent: Agent, signal?: AbortSignal) =>
    request(`${url}/v1/jobs/${JOB_ID}?wait=60s`, {
      headers: AUTHORIZED,
      dispatcher: agent,
      signal: signal ?? null,
    });
  const claim = (url: string, agent: Agent, signal?: AbortSignal) =>
    request(`${url}/v1/workers/${OTHER_ID}/claim`, {
      method: 'POST',
      headers: AUTHORIZED,
      body: JSON.stringify({ max: 1, wait: '60s' }),
      dispatcher: agent,
      signal: signal ?? null,
    });

  it.each([
    ['wait', wait],
    ['claim', claim],
  ])('is given up when its client leaves: %s', async (_, call) => {
    const { url, agent, recording } = await listen();
    const leaving = new AbortController();
    const answer = call(url, agent, leaving.signal).catch((error: Error) => error.name);
    const signal = await recording.waiting;
    expect(signal.aborted).toBe(false);
    leaving.abort();
    expect(await answer).toBe('AbortError');
    if (!signal.aborted) await once(signal, 'abort');
  });

  it.each([
    ['wait', wait],
    ['claim', claim],
  ])('is answered at once when the server closes, and its connection ends: %s', async (_, call) => {
    const { server, url, agent, recording } = await listen();
    const answer = call(url, agent);
    await recording.waiting;
    const started = performance.now();
    const closed = server.close();
    const { statusCode, headers, body } = await answer;
    await body.dump();
    expect([statusCode, headers.connection]).toEqual([200, 'close']);
    await closed;
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});

describe('closing', () => {
  it('sends those elsewhere first who still ask on the connections that they keep', async () => {
    const { server, url, agent } = await listen();
    await (await request(`${url}/livez`, { dispatcher: agent })).body.dump();
    server.endServing();
    const { statusCode, headers, body } = await request(`${url}/livez`, { dispatcher: agent });
    expect([statusCode, headers.connection]).toEqual([503, 'close']);
    expect(await body.json()).toMatchObject({ code: 'SHUTTING_DOWN' });
    await server.close();
  });

  it('does not wait for idle connections that clients keep', async () => {
    const { server, url, agent } = await listen();
    await (await request(`${url}/livez`, { dispatcher: agent })).body.dump();
    const started = performance.now();
    await server.close();
    expect(performance.now() - started).toBeLessThan(2_000);
  });
});
