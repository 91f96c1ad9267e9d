import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { request } from 'undici';
import { expect, it, onTestFinished } from 'vitest';
import { Door } from '../../../test/happening.js';
import { OPERATOR_KEY, OTHER_ID, testServer } from './routes.fixture.js';

const MIB = 1024 * 1024;
const LIMITS = { maxBulkBytes: 16 * MIB };

async function listen(others: Parameters<typeof testServer>[1] = {}) {
  const parts = testServer(LIMITS, others);
  await parts.server.listen({ port: 0, host: '127.0.0.1' });
  onTestFinished(async () => {
    // Clients that were refused may still be sending, which nobody needs to wait for.
    parts.server.server.closeAllConnections();
    await parts.server.close();
  });
  const { port } = parts.server.server.address() as AddressInfo;
  return { ...parts, port };
}

const HEADERS = { authorization: `Bearer ${OPERATOR_KEY}`, 'content-type': 'application/json' };
const LARGE = Buffer.from(`{"jobs":[{"task":"a","payload":"${'x'.repeat(14 * MIB)}"}]}`);

const bulkAt = (port: number, tenant = 'default') =>
  request(`http://127.0.0.1:${port}/v1/jobs/bulk`, {
    method: 'POST',
    headers: { ...HEADERS, 'punctual-tenant': tenant },
    body: LARGE,
  }).then(async ({ statusCode, headers, body }) => ({ statusCode, headers, body: await body.json() }));

/** A client that promises a large body and sends a little of it. */
async function slowClient(port: number, tenant: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1');
  await once(socket, 'connect');
  const head = Object.entries(HEADERS).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(
    `POST /v1/jobs/bulk HTTP/1.1\r\nhost: a\r\n${head.join('')}punctual-tenant: ${tenant}\r\n` +
      `content-length: ${16 * MIB}\r\n\r\n{"jobs":[`,
  );
  return socket;
}

it('large bodies are handled two at a time, and all of them in the end', async () => {
  let now = 0;
  let most = 0;
  const submitJobs = async () => {
    now += 1;
    most = Math.max(most, now);
    // A second body may come in, and a third should not.
    for (let pauses = 0; pauses < 100 && most < 2; pauses++) await pause(5);
    await pause(20);
    now -= 1;
    return { ids: [] };
  };
  const { port } = await listen({ submitJobs });
  const answers = await Promise.all(Array.from({ length: 6 }, () => bulkAt(port)));
  expect(answers.map(({ statusCode }) => statusCode)).toEqual(Array(6).fill(201));
  expect(most).toBe(2);
});

it('beyond what a tenant may have on the way a large body is refused, others and small ones are not', async () => {
  const { port, call } = await listen();
  const slow = await Promise.all(Array.from({ length: 8 }, () => slowClient(port, 'slow')));
  const refused = await until(
    () => bulkAt(port, 'slow'),
    ({ statusCode }) => statusCode === 503,
  );
  expect(refused.body).toMatchObject({ code: 'TOO_BUSY' });
  expect(refused.headers['retry-after']).toBe('1');
  expect((await bulkAt(port, 'calm')).statusCode).toBe(201);
  expect((await call('POST', '/v1/jobs', { task: 'a' })).statusCode).toBe(201);
  // What breaks off does not count any more.
  for (const socket of slow) socket.destroy();
  await until(
    () => bulkAt(port, 'slow'),
    ({ statusCode }) => statusCode === 201,
  );
});

it('what a worker reports waits for no bulk, however large both are', async () => {
  const door = new Door();
  const submitJobs = async () => {
    await door.opened;
    return { ids: [] };
  };
  const { port } = await listen({ submitJobs });
  const bulks = Array.from({ length: 8 }, () => bulkAt(port));
  const refused = await until(
    () => Promise.race([bulkAt(port).catch(() => null), pause(100, null)]),
    (answer) => answer?.statusCode === 503,
  );
  expect(refused!.body).toMatchObject({ code: 'TOO_BUSY' });
  const result = { jobId: OTHER_ID, fence: 1, outcome: 'succeeded', result: 'x'.repeat(4 * MIB) };
  const report = await request(`http://127.0.0.1:${port}/v1/workers/${OTHER_ID}/report`, {
    method: 'POST',
    headers: HEADERS,
    body: JSON.stringify({ results: [result] }),
  });
  expect([report.statusCode, await report.body.json()]).toMatchObject([200, { accepted: [OTHER_ID] }]);
  door.open();
  expect((await Promise.all(bulks)).map(({ statusCode }) => statusCode)).toEqual(Array(8).fill(201));
  // It moves some 200 MB through sockets, beside other tests.
}, 60_000);

async function until<T>(ask: () => Promise<T>, isDone: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (isDone(answer)) return answer;
  }
}
