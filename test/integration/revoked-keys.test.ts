import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import { createOperatorKey } from '../../src/store/operator-key.js';
import { createTestDatabase } from '../database.js';
import { nodeForTest, type TestNode } from '../node-for-tests.js';

/** How long a key goes on working at a node under steady traffic, in milliseconds. */
async function livesAt(node: TestNode, key: string): Promise<number> {
  const begun = performance.now();
  while ((await node.ask('GET', '/v1/queues', { key })).status !== 401) await pause(5);
  return performance.now() - begun;
}

it('a key that is removed in the database is refused by all nodes within about a second', async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop(), 30_000);
  const nodes = [await nodeForTest({ database }), await nodeForTest({ database })];
  const { id, key } = await createOperatorKey(database.url, 'to be revoked');
  for (const node of nodes) expect((await node.ask('GET', '/v1/queues', { key })).status).toBe(200);
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  await client.query('DELETE FROM punctual.api_keys WHERE id = $1', [id]);
  for (const lived of await Promise.all(nodes.map((node) => livesAt(node, key)))) {
    expect(lived).toBeLessThan(1_500);
  }
  // Others are not touched by it.
  for (const node of nodes) expect((await node.ask('GET', '/v1/queues')).status).toBe(200);
}, 20_000);
