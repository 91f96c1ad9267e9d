import { expect, it } from 'vitest';
import type { ClusterView } from '../../src/core/wire.js';
import { nodeForTest } from '../node-for-tests.js';
import { countPlaces, withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { until } from './store/test-shard.js';

const BULKS = 30;
const JOBS = 3;

it('submissions that hang take nothing from the leader, and end as failures that pass', async () => {
  const node = await nodeForTest();
  const worker = await ProtocolWorker.register(node);
  for (let i = 0; i < JOBS; i++) await node.submit({ task: 'work' });
  const answers = await withClient(node.database.url, async (client) => {
    await client.query('BEGIN');
    await client.query('LOCK TABLE punctual.keys');
    const bulks = Array.from({ length: BULKS }, (_, n) =>
      node.ask('POST', '/v1/jobs/bulk', { body: { jobs: [{ task: 'work', key: `${n}`, delay: '1h' }] } }),
    );
    await until(async () => {
      const { rows } = await client.query(
        `SELECT count(*)::int AS n FROM pg_locks
         WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      );
      return rows[0].n > 2;
    });
    const first = Promise.race(bulks);
    const work = async () => {
      for (let i = 0; i < JOBS; i++) await worker.succeed(await worker.claimOne());
      return 'worked';
    };
    // Only the deadline of a statement that hangs ends the first of them, two seconds from now.
    expect(await Promise.race([work(), first])).toBe('worked');
    const { status, body, headers } = await first;
    expect([status, body.code, headers.get('retry-after')]).toEqual([503, 'DATABASE_UNAVAILABLE', '1']);
    await client.query('COMMIT');
    return Promise.all(bulks);
  });
  expect(answers.filter(({ status }) => status !== 201 && status !== 503)).toEqual([]);
  const stored = answers.filter(({ status }) => status === 201).length;
  expect(await countPlaces(node.database.url)).toMatchObject({ keys: stored, later: stored, history: JOBS });
  const { shards } = await node.get<ClusterView>('GET', '/v1/cluster');
  expect(shards[0]!.epoch).toBe(worker.welcome.epoch);
});
