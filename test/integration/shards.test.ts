import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import pg from 'pg';
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { resolveConfig } from '../../src/core/config.js';
import { SILENT_LOG } from '../../src/core/log.js';
import { signNodeToken } from '../../src/core/tokens.js';
import type { ClusterView } from '../../src/core/wire.js';
import { startNode } from '../../src/node/start-node.js';
import { createTestDatabase, type TestDatabase } from '../database.js';
import { type Ask, TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';

const UNKNOWN = { status: 404, body: { code: 'SHARD_NOT_FOUND', detail: 'This node has no shard 7.' } };
const about = (shard: string): Ask => ({ headers: { 'punctual-shard': shard } });

async function query(database: TestDatabase, text: string, values: unknown[] = []): Promise<pg.QueryResult> {
  const client = new pg.Client(database.url);
  await client.connect();
  try {
    return await client.query(text, values);
  } finally {
    await client.end();
  }
}

describe('a request about a shard', () => {
  let node: TestNode;
  let token: string;
  beforeAll(async () => {
    node = await TestNode.start();
    const { rows } = await query(node.database, 'SELECT secret FROM punctual.cluster');
    token = signNodeToken(rows[0].secret, 'another-node', Date.now());
    return () => node.stop();
  });

  it.each([
    ['heartbeat', { epoch: 1, running: [] }],
    ['claim', { max: 1, wait: '0s' }],
    ['report', { results: [] }],
  ])('of a worker is refused when there is no such shard: %s', async (verb, body) => {
    const worker = await ProtocolWorker.register(node);
    const ask = (shard: string) =>
      node.ask('POST', `/v1/workers/${worker.id}/${verb}`, { ...about(shard), body });
    expect(await ask('7')).toMatchObject(UNKNOWN);
    expect(await ask('x')).toMatchObject({ status: 422, body: { code: 'INVALID_REQUEST' } });
    expect(await ask(String(worker.welcome.shard))).toMatchObject({ status: 200 });
  });

  it('ends the session in the shard that it names, and no other', async () => {
    const worker = await ProtocolWorker.register(node);
    const leave = (shard: string) => node.ask('DELETE', `/v1/workers/${worker.id}`, about(shard));
    expect(await leave('7')).toMatchObject(UNKNOWN);
    await worker.heartbeat();
    expect((await leave('0')).status).toBe(204);
  });

  it('of another node is refused when there is no such shard, but for hints, which are dropped', async () => {
    const ask = (method: string, path: string, ask: Ask = {}) =>
      node.ask(method, `/internal/${path}`, { key: token, ...ask });
    const change = { body: { change: 1, add: [], remove: [] } };
    const hint = { body: { jobs: [], startBefore: null } };
    expect(await ask('GET', 'ends/a-line', about('7'))).toMatchObject(UNKNOWN);
    expect(await ask('POST', 'ends/a-line', { ...about('7'), ...change })).toMatchObject(UNKNOWN);
    expect(await ask('POST', 'lease-changed', about('7'))).toMatchObject(UNKNOWN);
    expect((await ask('POST', 'hints', { ...about('7'), ...hint })).status).toBe(204);
  });

  it('means shard 0 when a node of an older version names none', async () => {
    const { id } = await node.submit({ task: 'nobody-has-it' });
    const hint = { body: { jobs: [], startBefore: null } };
    expect((await node.ask('POST', '/internal/hints', { key: token, ...hint })).status).toBe(204);
    expect((await node.ask('POST', '/internal/lease-changed', { key: token })).status).toBe(204);
    expect(await node.job(id)).toMatchObject({ state: 'pending' });
    const { shards } = await node.get<ClusterView>('GET', '/v1/cluster');
    expect(shards).toMatchObject([{ id: 0, leader: node.node.id }]);
  });
});

describe('a node that cannot start', () => {
  async function newDatabase(): Promise<TestDatabase> {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop(), 30_000);
    return database;
  }

  async function mustFail(database: TestDatabase, port: number): Promise<unknown> {
    const { config } = resolveConfig({ databaseUrl: database.url, port }, {}, () => '');
    const failure = await startNode({ config, log: SILENT_LOG, id: 'node-that-fails' }).catch(
      (error) => error,
    );
    const open = `SELECT 1 FROM pg_stat_activity WHERE application_name LIKE 'punctual%node-that-fails'`;
    // A server takes note of the end of a connection a moment after the client.
    await expect.poll(async () => (await query(database, open)).rowCount).toBe(0);
    return failure;
  }

  it('because a shard cannot be opened leaves no connection open', async () => {
    const database = await newDatabase();
    await query(database, 'DROP TABLE punctual.cluster');
    expect(await mustFail(database, 0)).toMatchObject({ code: '42P01' });
  });

  it('because its port is taken leaves no connection open', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await new Promise((resolve) => other.once('listening', resolve));
    const { port } = other.address() as AddressInfo;
    expect(await mustFail(await newDatabase(), port)).toMatchObject({ code: 'PORT_IN_USE' });
  });
});
