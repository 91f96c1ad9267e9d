import { rm } from 'node:fs/promises';
import pg from 'pg';
import { expect, it, onTestFinished } from 'vitest';
import type { Batch } from '../../../src/core/batch.js';
import { task } from '../../../src/core/task.js';
import type { ClusterView } from '../../../src/core/wire.js';
import { connect } from '../../../src/sdk/connect.js';
import { createOperatorKey } from '../../../src/store/operator-key.js';
import { createTestDatabase } from '../../database.js';
import { PunctualProcess } from '../../punctual-process.js';
import { temporaryFolder } from '../../temporary-folder.js';
import { until } from '../store/test-shard.js';

const BATCHES = 60;
const SIZE = 3;

/** Batches of which a part waits and a part does not; in one statement, so in one moment. */
const TORN = `
  SELECT b.id FROM punctual.batches b CROSS JOIN LATERAL (
    SELECT count(*) AS waiting FROM punctual.later l WHERE l.id = ANY(b.members)) l
  WHERE l.waiting NOT IN (0, cardinality(b.members))
    OR EXISTS (SELECT 1 FROM punctual.jobs j WHERE j.id = ANY(b.members)
      AND NOT EXISTS (SELECT 1 FROM punctual.claims c WHERE c.job = j.id))`;

it('a leader that is killed while batches start has started all members of a batch or none', async () => {
  const [database, folder] = await Promise.all([createTestDatabase(), temporaryFolder()]);
  onTestFinished(async () => {
    await database.drop();
    await rm(folder, { recursive: true });
  });
  const { key } = await createOperatorKey(database.url, 'tester');
  const start = async () => {
    const environment = { PUNCTUAL_DATABASE_URL: database.url };
    const server = new PunctualProcess(['server', '--port', '0'], { folder, environment });
    onTestFinished(async () => void (await server.kill('SIGKILL')));
    const [, url] = await server.prints('stdout', /^ready (\S+)\n/m);
    const ask = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
      const type = body === undefined ? {} : { 'content-type': 'application/json' };
      const answer = await fetch(url + path, {
        method,
        headers: { authorization: `Bearer ${key}`, ...type },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      if (!answer.ok) throw new Error(`${await answer.text()}\n${server.stderr}`);
      return (await answer.json()) as T;
    };
    return { server, url: url!, ask };
  };
  const leader = await start();
  await until(async () => (await leader.ask<ClusterView>('GET', '/v1/cluster')).shards[0]!.leader !== null);
  const follower = await start();

  const runs = new Map<string, number>();
  const work = task('work', async (_: null, ctx) => {
    runs.set(ctx.jobId, (runs.get(ctx.jobId) ?? 0) + 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
  });
  const punctual = connect({ url: `${follower.url},${leader.url}`, apiKey: key });
  onTestFinished(() => punctual.close());
  for (const slots of [2, 2, 3]) {
    const worker = punctual.worker([work], { slots, stopGraceMs: 50 });
    await worker.start();
    onTestFinished(() => worker.stop());
  }

  const ids: string[] = [];
  for (let i = 0; i < BATCHES; i += 1) {
    const jobs = Array.from({ length: SIZE }, () => ({ task: 'work', payload: null }));
    ids.push((await follower.ask<Batch>('POST', '/v1/batches', { jobs })).id);
  }
  await until(async () => runs.size >= SIZE);
  await leader.server.kill('SIGKILL');
  const client = new pg.Client(database.url);
  await client.connect();
  onTestFinished(() => client.end());
  expect((await client.query(TORN)).rows).toEqual([]);

  for (const id of ids) {
    let batch: Batch;
    do {
      batch = await follower.ask<Batch>('GET', `/v1/batches/${id}?wait=20s`);
      expect((await client.query(TORN)).rows).toEqual([]);
    } while (batch.endedAt === null);
    expect(batch).toMatchObject({ state: 'succeeded' });
  }
  // No worker died, so no attempt was lost: every member ran once.
  expect(runs.size).toBe(BATCHES * SIZE);
  expect(Math.max(...runs.values())).toBe(1);
}, 90_000);
