import { createServer as createHttpsServer } from 'node:https';
import { createServer, type Server, Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { buildConnector } from 'undici';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type Answering, HttpReceiver } from '../../../test/http-receiver.js';
import { MemoryScheduler } from '../../../test/memory-scheduler.js';
import { testCertificate } from '../../../test/test-certificate.js';
import type { HttpTarget } from '../../core/job.js';
import { verifyWebhook } from '../../core/webhook.js';
import type { Assignment } from '../../core/wire.js';
import { testContext } from '../../sdk/test-context.js';
import { HANDED_ON } from '../attempt-result.js';
import { resolveWorkerOptions } from '../worker-options.js';
import type { Dial } from './http/connector.js';
import { HttpRunner, type HttpRunnerParts } from './http.js';

const SIGNING = [
  `whsec_${Buffer.alloc(24, 1).toString('base64')}`,
  `whsec_${Buffer.alloc(24, 2).toString('base64')}`,
];
const TOKEN = 'token-of-the-receiver';

/** A runner that may call loopback, and a node behind it that keeps secrets. */
function openRunner(
  parts: HttpRunnerParts = {},
  options: { maxResultBytes?: number } = {},
  now: () => number = Date.now,
) {
  const scheduler = new MemoryScheduler();
  const runner = new HttpRunner(parts);
  const resolved = resolveWorkerOptions({ allowAddresses: ['127.0.0.1'], log: false, ...options });
  const session = () => ({ workerId: 'w', shard: 0 });
  const urls = ['http://node.example'];
  const worker = { workerTimeoutMs: () => 10_000, onWarning: () => undefined };
  runner.open({ gateway: scheduler, session, options: resolved, urls, clock: { now }, ...worker });
  onTestFinished(() => runner.close());
  const call = async (
    target: Omit<HttpTarget, 'type'>,
    change: Partial<Assignment> = {},
    signal?: AbortSignal,
  ) => {
    const assignment = scheduler.submit(
      '',
      { n: 1 },
      {
        target: { type: 'http', ...target },
        receiverToken: TOKEN,
        token: 'token-of-the-worker',
        ...change,
      },
    );
    return runner.run(assignment, testContext({ ...(signal && { signal }) }));
  };
  return { scheduler, call };
}

async function failureOf(promise: Promise<unknown>): Promise<Error & Record<string, unknown>> {
  return promise.then(
    () => expect.unreachable('the call succeeded'),
    (error) => error,
  );
}

async function start(answer?: Answering, options: { maxResultBytes?: number } = {}) {
  return { receiver: await HttpReceiver.start(answer), ...openRunner({}, options) };
}

/** A server that does with each connection what the test says. */
async function rawServer(onConnection: (socket: import('node:net').Socket) => void): Promise<string> {
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined);
    onTestFinished(() => void socket.destroy());
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`;
}

const answering =
  (type: string, body: string | Buffer, headers: Record<string, string> = {}): Answering =>
  (_, response) => {
    response.writeHead(200, { ...(type !== '' && { 'content-type': type }), ...headers });
    response.end(body);
  };

describe('the result of a call', () => {
  it.each([
    ['application/json', '{"a":1}', { body: { a: 1 } }],
    ['application/problem+json', '[1]', { body: [1] }],
    ['application/json', 'not json', { body: 'not json' }],
    ['text/plain; charset=utf-8', 'ä', { body: 'ä' }],
    ['', 'plain', { body: 'plain' }],
    ['text/plain', '', { body: null }],
    ['image/png', 'abc', { body: null, omitted: { type: 'image/png', bytes: 3 } }],
  ])('of type %j is kept as what it is', async (type, body, expected) => {
    const { receiver, call } = await start(answering(type, body));
    expect(await call({ url: receiver.url })).toEqual({
      status: 200,
      headers: type === '' ? {} : { 'content-type': type },
      ...expected,
    });
  });

  it('is not text that is no UTF-8', async () => {
    const { receiver, call } = await start(answering('text/plain', Buffer.from([0xff, 0xfe])));
    expect(await call({ url: receiver.url })).toMatchObject({ body: null, omitted: { bytes: 2 } });
  });

  it('is a note where the receiver compresses in spite of what it was asked, however large that would be', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000));
    const { receiver, call } = await start(answering('text/plain', bomb, { 'content-encoding': 'gzip' }));
    const before = process.memoryUsage().rss;
    expect(await call({ url: receiver.url })).toMatchObject({
      body: null,
      omitted: { type: 'text/plain (gzip)', bytes: bomb.length },
    });
    expect(receiver.calls.all[0]!.headers['accept-encoding']).toBe('identity');
    expect(process.memoryUsage().rss - before).toBeLessThan(40_000_000);
  });

  it('is cut at the cap, and nothing beyond is read', async () => {
    let written = 0;
    const { receiver, call } = await start(
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/plain' });
        const piece = 'x'.repeat(65_536);
        const more = () => {
          while (!response.destroyed && written < 1_000_000_000) {
            written += piece.length;
            if (!response.write(piece)) return void response.once('drain', more);
          }
        };
        more();
      },
      { maxResultBytes: 100_000 },
    );
    const result = (await call({ url: receiver.url })) as { body: string; cut: boolean };
    expect(result.cut).toBe(true);
    expect(result.body.length).toBeGreaterThan(90_000);
    expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThanOrEqual(100_000);
    expect(written).toBeLessThan(20_000_000);
  });

  it('takes no more memory than it has bytes, however many pieces it comes in', async () => {
    const pieces = 250_000;
    const url = await rawServer((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n');
        socket.end(`${'1\r\nx\r\n'.repeat(pieces)}0\r\n\r\n`);
      });
    });
    const { call } = openRunner();
    const before = process.memoryUsage().rss;
    const results = await Promise.all(Array.from({ length: 4 }, () => call({ url })));
    for (const result of results) expect(result).toMatchObject({ body: 'x'.repeat(pieces) });
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
  });

  it('fits even where JSON needs six bytes for each of the answer', async () => {
    const { receiver, call } = await start(answering('text/plain', '\u0001'.repeat(50_000)), {
      maxResultBytes: 60_000,
    });
    const result = await call({ url: receiver.url });
    expect(result).toMatchObject({ cut: true });
    expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThanOrEqual(60_000);
  });

  it('is expected or not as the target says', async () => {
    const { receiver, call } = await start((seen) => Number(seen.path.slice(1)));
    const at = (status: number) => `${receiver.url}/${status}`;
    expect(await call({ url: at(404), expect: [404] })).toMatchObject({ status: 404 });
    expect(await failureOf(call({ url: at(200), expect: [404] }))).toMatchObject({
      code: 'HTTP_STATUS_200',
      retryable: false,
    });
    expect(await call({ url: at(202) })).toBe(HANDED_ON);
    expect(await call({ url: at(202), completion: 'response' })).toMatchObject({ status: 202 });
    for (const [status, retryable, origin] of [
      [400, false, undefined],
      [404, false, undefined],
      [408, true, undefined],
      [410, false, { isGone: true }],
      [425, true, undefined],
      [429, true, undefined],
      [500, true, { isDown: true }],
      [503, true, { isDown: true }],
      [302, false, undefined],
    ] as const) {
      const error = await failureOf(call({ url: at(status) }));
      expect(error).toMatchObject({ code: `HTTP_STATUS_${status}`, retryable });
      expect(error.origin).toEqual(origin);
    }
    expect(await failureOf(call({ url: at(500), retryStatuses: [404] }))).toMatchObject({ retryable: false });
    expect(await failureOf(call({ url: at(404), retryStatuses: [404] }))).toMatchObject({ retryable: true });
  });

  it('says how long the receiver wants to be left alone', async () => {
    const { receiver, call } = await start((seen, response) => {
      response.setHeader('retry-after', '7');
      return Number(seen.path.slice(1));
    });
    const pause = { retryAfterMs: 7_000, origin: { pauseMs: 7_000 } };
    expect(await failureOf(call({ url: `${receiver.url}/429` }))).toMatchObject(pause);
    expect(await failureOf(call({ url: `${receiver.url}/503` }))).toMatchObject(pause);
    expect((await failureOf(call({ url: `${receiver.url}/404` }))).retryAfterMs).toBeUndefined();
  });
});

describe('a call', () => {
  it('sends a body as JSON, text that is no JSON as it is, and none with GET', async () => {
    const { receiver, call } = await start();
    const { url } = receiver;
    await call({ url });
    await call({ url, body: { a: [1] } });
    await call({ url, body: 'text' });
    await call({ url, body: 'text', headers: { 'Content-Type': 'text/plain' } });
    await call({ url, method: 'GET' });
    await call({ url, method: 'PUT', body: null });
    const sent = receiver.calls.all.map((each) => [each.method, each.body, each.headers['content-type']]);
    expect(sent).toEqual([
      ['POST', '{"n":1}', 'application/json'],
      ['POST', '{"a":[1]}', 'application/json'],
      ['POST', '"text"', 'application/json'],
      ['POST', 'text', 'text/plain'],
      ['GET', '', undefined],
      ['PUT', 'null', 'application/json'],
    ]);
  });

  it('is signed with every valid secret over what is sent, and keeps those for a while', async () => {
    const { scheduler, receiver, call } = await start();
    scheduler.secretsKept = { values: {}, signing: SIGNING };
    await call({ url: receiver.url, body: { ä: 1 } });
    await call({ url: receiver.url, method: 'GET' });
    for (const each of receiver.calls.all) {
      for (const secret of SIGNING)
        expect(verifyWebhook(each.headers, each.body, secret).id).toMatch(/^job-\d-1$/);
    }
    expect(scheduler.secretsAsked).toHaveLength(1);
    await call({ url: receiver.url }, { tenant: 'another' });
    expect(scheduler.secretsAsked).toHaveLength(2);
  });

  it('is dated by the clock of the nodes, because that of the worker may be wrong', async () => {
    const receiver = await HttpReceiver.start((_, response) => {
      response.setHeader('retry-after', new Date(3_600_000 + 60_000).toUTCString());
      return 429;
    });
    const { call } = openRunner({}, {}, () => 3_600_000.5);
    expect(await failureOf(call({ url: receiver.url }))).toMatchObject({ retryAfterMs: 60_000 });
    expect(receiver.calls.all[0]!.headers['webhook-timestamp']).toBe('3600');
  });

  it('has its own headers, whatever other jobs send to the same address', async () => {
    const { receiver, call } = await start();
    const values = ['a', 'b', 'a', undefined, 'c'];
    for (const value of values) {
      await call({ url: receiver.url, ...(value !== undefined && { headers: { 'X-Mark': value } }) });
    }
    expect(receiver.calls.all.map(({ headers }) => headers['x-mark'])).toEqual(values);
  });

  it('is text if the header of its type says so, whatever the values of other headers are', async () => {
    const { receiver, call } = await start();
    const headers = { 'x-a': 'content-type', 'x-b': 'application/json', 'content-type': 'text/plain' };
    await call({ url: receiver.url, headers, body: 'as it is' });
    expect(receiver.calls.all[0]!.body).toBe('as it is');
  });

  it('sends what looks like a secret in a payload as it is', async () => {
    const { scheduler, receiver, call } = await start();
    scheduler.secretsKept = { values: { key: 'the-secret' }, signing: [] };
    await call({ url: receiver.url }, { payload: { a: { $secret: 'key' } } });
    expect(receiver.calls.all[0]!.body).toBe('{"a":{"$secret":"key"}}');
    expect(scheduler.secretsAsked[0]!.names).toEqual([]);
  });

  it('takes results from the payload where the body of a step refers to them, and looks for no secrets in them', async () => {
    const { scheduler, receiver, call } = await start();
    scheduler.secretsKept = { values: { key: 'the-secret' }, signing: [] };
    const body = {
      auth: { $secret: 'key' },
      all: [{ $from: 'a.result' }, { more: { $from: 'input.x', b: 1 } }],
    };
    const payload = { auth: { $secret: 'other' }, all: [{ $secret: 'key' }, { more: { $from: 'a', b: 1 } }] };
    await call({ url: receiver.url, body }, { payload, workflow: 'w', task: null });
    await call(
      { url: receiver.url, body: { $from: 'a.result' } },
      { payload: [1], workflow: 'w', task: null },
    );
    // Only steps of workflows have results to refer to, and only those that say their targets themselves.
    await call({ url: receiver.url, body: { $from: 'a.result' } }, { payload: [1], task: null });
    await call(
      { url: receiver.url, body: { $from: 'a.result' } },
      { payload: [1], workflow: 'w', task: 't' },
    );
    expect(receiver.calls.all.map((each) => each.body)).toEqual([
      '{"auth":"the-secret","all":[{"$secret":"key"},{"more":{"$from":"input.x","b":1}}]}',
      '[1]',
      '{"$from":"a.result"}',
      '{"$from":"a.result"}',
    ]);
    expect(scheduler.secretsAsked.flatMap(({ names }) => names)).toEqual(['key']);
  });

  it('fills in secrets at the last moment, asks for them each time, and keeps none of them', async () => {
    const { scheduler, receiver, call } = await start((seen, response) => {
      response.writeHead(seen.path === '/bad' ? 500 : 200, {
        'content-type': 'application/json',
        location: `/${seen.headers['x-key']}`,
      });
      response.end(
        JSON.stringify({
          echo: seen.headers['x-key'],
          token: seen.headers['punctual-token'],
          body: seen.body,
        }),
      );
    });
    scheduler.secretsKept = { values: { key: 's3cr3t"value', other: 'another-one' }, signing: [] };
    const target = {
      headers: { 'X-Key': { $secret: 'key', prefix: 'Bearer ' } },
      body: { list: [{ $secret: 'other' }], same: { $secret: 'key' } },
    };
    const result = await call({ url: receiver.url, ...target });
    const failure = await failureOf(call({ url: `${receiver.url}/bad`, ...target }));
    expect(scheduler.secretsAsked.map(({ names, token }) => [[...names].sort(), token])).toEqual(
      Array(2).fill([['key', 'other'], 'token-of-the-worker']),
    );
    expect(receiver.calls.all[0]).toMatchObject({
      headers: { 'x-key': 'Bearer s3cr3t"value' },
      body: '{"list":["another-one"],"same":"s3cr3t\\"value"}',
    });
    expect(result).toMatchObject({ body: { echo: 'Bearer [secret key]', token: '[token]' } });
    for (const kept of [JSON.stringify(result), failure.message, String(failure.stack)]) {
      expect(kept).not.toContain('s3cr3t');
      expect(kept).not.toContain('another-one');
      expect(kept).not.toContain(TOKEN);
      expect(kept).not.toContain('token-of-the-worker');
    }
    // The worker's own token never leaves it.
    expect(JSON.stringify(receiver.calls.all)).not.toContain('token-of-the-worker');
  });

  it('waits for its secrets while no node can answer, and is made as soon as one can', async () => {
    const { scheduler, receiver, call } = await start();
    scheduler.secretsKept = { values: { key: 'the-secret' }, signing: SIGNING };
    for (const code of ['NO_LEADER', 'UNREACHABLE', 'DATABASE_UNAVAILABLE'] as const) {
      scheduler.fail('secrets', 3, 'before', code);
      const headers = { 'x-key': { $secret: 'key' } };
      await call({ url: receiver.url, headers }, { delivery: 'at-most-once', tenant: code });
    }
    expect(receiver.calls.all).toHaveLength(3);
    scheduler.fail('secrets', 1_000, 'before', 'NO_LEADER');
    const late = call({ url: receiver.url, timeout: '200ms' }, { tenant: 'late' });
    expect(await failureOf(late)).toMatchObject({ code: 'HTTP_TIMEOUT', retryable: true, origin: undefined });
  });

  it('is not failed by what another attempt of its tenant is refused', async () => {
    const { scheduler, receiver, call } = await start();
    scheduler.secretsKept = { values: {}, signing: SIGNING };
    for (const code of ['STALE_FENCE', 'FORBIDDEN'] as const) {
      scheduler.fail('secrets', 1, 'before', code);
      const calls = Array.from({ length: 5 }, () => call({ url: receiver.url }, { tenant: code }));
      const outcomes = await Promise.allSettled(calls);
      expect(outcomes.map(({ status }) => status)).toEqual(['rejected', ...Array(4).fill('fulfilled')]);
    }
    for (const { headers } of receiver.calls.all) expect(headers).toHaveProperty('webhook-signature');
    expect(scheduler.secretsAsked).toHaveLength(4);
  });

  it('without its secret is not made', async () => {
    const { scheduler, receiver, call } = await start();
    const target = { url: receiver.url, headers: { a: { $secret: 'key' } } };
    scheduler.secretsKept = null;
    expect(await failureOf(call(target))).toMatchObject({ code: 'SECRETS_UNAVAILABLE', retryable: true });
    scheduler.secretsKept = { values: {}, signing: [] };
    expect(await failureOf(call(target))).toMatchObject({ code: 'SECRET_NOT_FOUND', retryable: false });
    scheduler.secretsKept = { values: { key: 'a\r\nhost: b' }, signing: [] };
    expect(await failureOf(call(target))).toMatchObject({ code: 'INVALID_CALL', retryable: false });
    expect(receiver.connections).toBe(0);
  });

  it('without an answer says that the origin is down', async () => {
    const { call } = openRunner({ lookUp: async () => [] });
    const down = { retryable: true, origin: { isDown: true } };
    const reset = await rawServer((socket) => socket.once('data', () => socket.resetAndDestroy()));
    const closes = await rawServer((socket) => socket.once('data', () => socket.end()));
    const talks = await rawServer((socket) => socket.once('data', () => socket.end('SSH-2.0-x\r\n\r\n')));
    for (const url of [reset, closes, talks, 'http://127.0.0.1:1'])
      expect(await failureOf(call({ url }))).toMatchObject({ code: 'HTTP_NO_ANSWER', ...down });
    expect(await failureOf(call({ url: 'http://nowhere.example' }))).toMatchObject({
      code: 'HTTP_DNS',
      ...down,
    });
    expect(await failureOf(call({ url: closes.replace('http:', 'https:') }))).toMatchObject(down);
  });

  it('over TLS checks the certificate against the name, although an address is dialled', async () => {
    const certificate = testCertificate('receiver');
    let requests = 0;
    const server = createHttpsServer(certificate, (_, response) => {
      requests += 1;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close().closeAllConnections());
    const { port } = server.address() as { port: number };
    const lookUp = async () => ['127.0.0.1'];
    const dial = buildConnector({ ca: certificate.cert, allowH2: false });
    // Nobody has signed it; and it is right for the address, but not for the name.
    const unknown = openRunner({ lookUp }).call({ url: `https://127.0.0.1:${port}` });
    const other = openRunner({ lookUp, dial }).call({ url: `https://other.example:${port}` });
    for (const call of [unknown, other])
      expect(await failureOf(call)).toMatchObject({ code: 'HTTP_TLS', origin: { isDown: true } });
    expect(requests).toBe(0);
    const right = openRunner({ lookUp, dial }).call({ url: `https://127.0.0.1:${port}` });
    expect(await right).toMatchObject({ status: 200 });
  });

  it('to a refused address says nothing about the origin', async () => {
    const { call } = openRunner({
      lookUp: async () => ['10.0.0.1'],
      dial: () => expect.unreachable('dialled'),
    });
    const error = await failureOf(call({ url: 'http://inside.example' }));
    expect(error).toMatchObject({ code: 'ADDRESS_REFUSED', retryable: false });
    expect(error.origin).toBeUndefined();
  });

  it('ends at its timeout: without an answer, while the body drips, and while a name is resolved', async () => {
    const { call } = openRunner({ lookUp: () => new Promise(() => undefined) });
    const silent = await rawServer(() => undefined);
    const drips = await rawServer((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n');
      const drip = setInterval(() => socket.write('x'), 20);
      socket.on('close', () => clearInterval(drip));
    });
    for (const url of [silent, drips, 'http://slow.example']) {
      const began = performance.now();
      const error = await failureOf(call({ url, timeout: '300ms' }));
      expect(error).toMatchObject({ code: 'HTTP_TIMEOUT', retryable: true, origin: { isDown: true } });
      expect(performance.now() - began).toBeLessThan(1_500);
    }
  });

  it('ends at its timeout although the connection never stands, and does not go on connecting', async () => {
    const opening: Socket[] = [];
    const dial = ((...[, callback]: Parameters<Dial>) => {
      const socket = new Socket().on('error', (error) => callback(error, null));
      opening.push(socket);
      return socket;
    }) as unknown as Dial;
    const { call } = openRunner({ lookUp: async () => ['1.1.1.1'], dial });
    for (const delivery of [undefined, 'at-most-once'] as const) {
      const began = performance.now();
      const calls = Array.from({ length: 300 }, () =>
        failureOf(call({ url: 'http://far.example', timeout: '1s' }, delivery && { delivery })),
      );
      const errors = await Promise.all(calls);
      expect(performance.now() - began).toBeLessThan(5_000);
      expect(new Set(errors.map(({ code }) => code))).toEqual(new Set(['HTTP_TIMEOUT']));
      // Those that only waited for their turn say nothing about the origin.
      expect(errors.filter(({ origin }) => origin === undefined).length).toBeLessThanOrEqual(300 - 256);
      expect(opening.length).toBeGreaterThanOrEqual(256);
      expect(opening.filter(({ destroyed }) => !destroyed)).toEqual([]);
      opening.length = 0;
    }
    // What was given up is of no use to the next call.
    const next = failureOf(call({ url: 'http://far.example', timeout: '1s' }));
    expect(await next).toMatchObject({ origin: { isDown: true } });
    expect(opening).toHaveLength(1);
  });

  it('that waits for its turn says nothing about the origin', async () => {
    const { call } = openRunner();
    const silent = await rawServer(() => undefined);
    const stop = new AbortController();
    const many = Array.from({ length: 256 }, () => failureOf(call({ url: silent }, {}, stop.signal)));
    const error = await failureOf(call({ url: silent, timeout: '100ms' }));
    expect(error).toMatchObject({ code: 'HTTP_TIMEOUT', message: expect.stringContaining('No call') });
    expect(error.origin).toBeUndefined();
    stop.abort(new Error('stopped'));
    await Promise.all(many);
  });

  it('that waited for its turn is signed and dated when it is sent', async () => {
    let now = 1_000_000;
    const held: (() => void)[] = [];
    const receiver = await HttpReceiver.start((_, response) => void held.push(() => response.end()));
    const { scheduler, call } = openRunner({}, {}, () => now);
    scheduler.secretsKept = { values: {}, signing: SIGNING };
    const many = Array.from({ length: 257 }, () => call({ url: receiver.url }));
    await receiver.calls.times(256);
    now = 2_000_000;
    for (const answer of held) answer();
    await receiver.calls.times(257);
    held.at(-1)!();
    await Promise.all(many);
    const dates = receiver.calls.all.map(({ headers }) => headers['webhook-timestamp']);
    expect([...new Set(dates)]).toEqual(['1000', '2000']);
    expect(dates.filter((date) => date === '2000')).toHaveLength(1);
  });

  it('never lasts longer than its attempt, and ends when that is stopped', async () => {
    const { call } = openRunner();
    const silent = await rawServer(() => undefined);
    expect(await failureOf(call({ url: silent }, { timeoutMs: 100 }))).toMatchObject({
      code: 'HTTP_TIMEOUT',
    });
    const stop = new AbortController();
    const stopped = call({ url: silent }, {}, stop.signal);
    stop.abort(new Error('stopped'));
    expect(await failureOf(stopped)).toMatchObject({ message: 'stopped' });
  });
});

describe('connections', () => {
  it('are kept for the next calls, but never for a call that is made at most once', async () => {
    const { receiver, call } = await start(answering('text/plain', 'ok'));
    for (let i = 0; i < 10; i++) await call({ url: receiver.url });
    // A call may begin just before the connection of the last one is free again.
    const kept = receiver.connections;
    expect(kept).toBeLessThanOrEqual(2);
    for (let i = 0; i < 3; i++) await call({ url: receiver.url }, { delivery: 'at-most-once' });
    expect(receiver.connections).toBe(kept + 3);
  });

  it('of an at-most-once call that broke are not opened again', async () => {
    let connections = 0;
    const reset = await rawServer((socket) => {
      connections += 1;
      socket.once('data', () => socket.resetAndDestroy());
    });
    const { call } = openRunner();
    await failureOf(call({ url: reset }, { delivery: 'at-most-once' }));
    expect(connections).toBe(1);
  });

  it('ignore proxies from the environment', async () => {
    const proxy = await HttpReceiver.start();
    process.env.HTTP_PROXY = proxy.url;
    process.env.http_proxy = proxy.url;
    onTestFinished(() => {
      delete process.env.HTTP_PROXY;
      delete process.env.http_proxy;
    });
    const { receiver, call } = await start();
    await call({ url: receiver.url });
    expect([receiver.connections, proxy.connections]).toEqual([1, 0]);
  });
});

describe('a redirect', () => {
  const to =
    (location: string, status = 307): Answering =>
    (seen, response) => {
      if (seen.path === '/end') return 200;
      response.setHeader('location', location);
      return status;
    };

  it('is not followed unless the target says so, and not further than that', async () => {
    const { receiver, call } = await start(to('/again'));
    expect(await failureOf(call({ url: receiver.url }))).toMatchObject({ code: 'HTTP_STATUS_307' });
    expect(receiver.calls.all).toHaveLength(1);
    await failureOf(call({ url: receiver.url, redirects: 2 }));
    expect(receiver.calls.all).toHaveLength(4);
  });

  it('on the same origin keeps everything, on another nothing that was not meant for it', async () => {
    const other = await HttpReceiver.start();
    const { scheduler, receiver, call } = await start((seen, response) =>
      to(seen.path === '/far' ? `${other.url}/end` : '/end')(seen, response),
    );
    scheduler.secretsKept = { values: { key: 'the-secret' }, signing: SIGNING };
    const headers = { 'x-key': { $secret: 'key' }, authorization: 'Basic abc', 'x-plain': 'yes' };
    await call({ url: receiver.url, headers, redirects: 1 });
    expect(receiver.calls.all[1]!.headers).toMatchObject({ 'x-key': 'the-secret', 'punctual-token': TOKEN });
    expect(receiver.calls.all[1]!.body).toBe('{"n":1}');
    const traces = receiver.calls.all.map((each) => each.headers.traceparent);
    expect(traces[1]).toBe(traces[0]);
    await call({ url: `${receiver.url}/far`, headers, redirects: 1 });
    const [far] = other.calls.all;
    expect(far!.headers).toMatchObject({ 'x-plain': 'yes', host: new URL(other.url).host });
    for (const name of ['x-key', 'authorization', 'punctual-token', 'webhook-signature', 'webhook-id'])
      expect(far!.headers).not.toHaveProperty(name);
    const secret = { url: `${receiver.url}/far`, body: { $secret: 'key' }, redirects: 1 };
    expect(await failureOf(call(secret))).toMatchObject({ code: 'REDIRECT_REFUSED', retryable: false });
    expect(other.calls.all).toHaveLength(1);
  });

  it('that asks for GET gets no body', async () => {
    const { receiver, call } = await start(to('/end', 303));
    await call({ url: receiver.url, redirects: 1 });
    expect(receiver.calls.all[1]).toMatchObject({ method: 'GET', body: '' });
    expect(receiver.calls.all[1]!.headers).not.toHaveProperty('content-type');
  });

  it.each([
    'http://10.0.0.1/',
    'http://[::1]/',
    'http://169.254.169.254/latest',
    'ftp://127.0.0.1/',
    'http://u:p@127.0.0.1/',
    'http://',
  ])('to %s leads nowhere', async (location) => {
    const { receiver, call } = await start(to(location));
    const error = await failureOf(call({ url: receiver.url, redirects: 5 }));
    expect(error).toMatchObject({
      code: expect.stringMatching(/^(ADDRESS|REDIRECT)_REFUSED$/),
      retryable: false,
    });
    expect(receiver.calls.all).toHaveLength(1);
  });
});
