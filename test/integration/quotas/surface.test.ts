import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { nodeForTest, type TestNode } from '../../node-for-tests.js';
import { ProtocolWorker } from '../../protocol-worker.js';

/** An open connection, and what was said on it. */
async function connection(node: TestNode): Promise<{ socket: Socket; said: () => string }> {
  const socket = connect(node.node.port, '127.0.0.1');
  onTestFinished(() => void socket.destroy());
  let said = '';
  socket.on('data', (data) => {
    said += data.toString();
  });
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return { socket, said: () => said };
}

const LIVEZ = 'GET /livez HTTP/1.1\r\nhost: x\r\n\r\n';

it('a key that makes too many requests is told when to go on; its workers and other keys are not limited', async () => {
  const node = await nodeForTest({ settings: { keyRate: 20 } });
  const { key } = await node.get<{ key: string }>('POST', '/v1/keys', {
    body: { tenant: 'acme', name: 'busy', scopes: ['read', 'submit', 'work'] },
  });
  const answers = await Promise.all(Array.from({ length: 100 }, () => node.ask('GET', '/v1/jobs', { key })));
  const limited = answers.filter(({ status }) => status === 429);
  expect(limited.length).toBeGreaterThan(0);
  for (const { body, headers } of limited) {
    expect(body.code).toBe('RATE_LIMITED');
    expect(Number(headers.get('retry-after'))).toBeGreaterThanOrEqual(1);
  }
  expect((await node.ask('GET', '/v1/jobs')).status).toBe(200);
  const claims = await Promise.all(
    Array.from({ length: 50 }, () => node.ask('POST', '/v1/workers', { key, body: { name: 'w' } })),
  );
  expect(claims.filter(({ status }) => status === 429)).toEqual([]);
  await vi.waitFor(async () => expect((await node.ask('GET', '/v1/jobs', { key })).status).toBe(200), 5_000);
});

it('connections beyond the limit are told so and closed, and those that are open go on', async () => {
  const node = await nodeForTest({ settings: { maxConnections: 5 } });
  const open = await Promise.all(Array.from({ length: 5 }, () => connection(node)));
  const [first] = open;
  first!.socket.write(LIVEZ);
  await vi.waitFor(() => expect(first!.said()).toContain('200 OK'));
  const more = await connection(node);
  const closed = once(more.socket, 'close');
  more.socket.write(LIVEZ);
  await closed;
  expect(more.said()).toContain('503 Service Unavailable');
  expect(more.said()).toContain('TOO_MANY_CONNECTIONS');
  expect(more.said().toLowerCase()).toContain('retry-after: 1');
  first!.socket.write(LIVEZ);
  await vi.waitFor(() => expect(first!.said().match(/200 OK/g)).toHaveLength(2));
  // A worker gets through all the same.
  await ProtocolWorker.register(node);
  for (const { socket } of open.slice(1)) socket.destroy();
  await vi.waitFor(async () => {
    const again = await connection(node);
    again.socket.write(LIVEZ);
    await vi.waitFor(() => expect(again.said()).toContain('200 OK'), 500);
  }, 10_000);
});

it('clients that send their requests slowly hold up nobody', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node, { slots: 1 });
  const slow = await Promise.all(Array.from({ length: 100 }, () => connection(node)));
  for (const [i, { socket }] of slow.entries()) {
    if (i % 2 === 0) socket.write('POST /v1/jobs HTTP/1.1\r\nhost: x\r\nx-slow: ');
    else {
      const head = `POST /v1/jobs HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${node.apiKey}\r\n`;
      socket.write(`${head}content-type: application/json\r\ncontent-length: 1000\r\n\r\n{"task"`);
    }
  }
  const job = await node.submit({ task: 'work' });
  const assignment = await worker.claimOne();
  expect(assignment.jobId).toBe(job.id);
  await worker.succeed(assignment);
  expect((await node.ended(job.id)).state).toBe('succeeded');
});
