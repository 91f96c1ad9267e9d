import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { firstUuidAt } from '../../src/core/uuid.js';
import { VISIBLE_WITHIN_MS } from '../../src/store/submit-jobs.js';
import { nodeForTest } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { TestClock } from '../test-clock.js';

it('a job whose hint was lost is found, however much time passes until the next look', async () => {
  const clock = new TestClock();
  const node = await nodeForTest({ clock, settings: { hints: false, workerTimeout: '2d' } });
  const worker = await ProtocolWorker.register(node);
  // A look may fall between a submission and the leap, so there are several of them.
  const submitted: string[] = [];
  for (let leap = 0; leap < 5; leap++) {
    submitted.push((await node.submit({ task: 'work' })).id);
    clock.advance(60_000);
  }
  const claimed: string[] = [];
  while (claimed.length < submitted.length) claimed.push((await worker.claimOne()).jobId);
  expect(claimed.sort()).toEqual(submitted.sort());
});

it('a job that becomes visible as late after its id was made as a submission may is found', async () => {
  const clock = new TestClock();
  const node = await nodeForTest({ clock, settings: { hints: false, workerTimeout: '2d' } });
  const worker = await ProtocolWorker.register(node);
  const { id } = await node.submit({ task: 'work' });
  expect((await worker.claimOne()).jobId).toBe(id);
  const late = firstUuidAt(clock.now()).slice(0, 13) + randomUUID().slice(13);
  await withClient(node.database.url, async (client) => {
    const { fields } = await client.query('SELECT * FROM punctual.jobs LIMIT 0');
    const others = fields.map((field) => field.name).filter((name) => name !== 'id');
    await client.query('BEGIN');
    await client.query(
      `INSERT INTO punctual.jobs (id, ${others}) SELECT $2::uuid, ${others} FROM punctual.jobs WHERE id = $1`,
      [id, late],
    );
    clock.advance(VISIBLE_WITHIN_MS);
    // Looks have gone past it by the time that this one is found.
    const other = await node.submit({ task: 'work' });
    expect((await worker.claimOne()).jobId).toBe(other.id);
    await client.query('COMMIT');
  });
  expect((await worker.claimOne()).jobId).toBe(late);
});
