import { expect, it } from 'vitest';
import { inTransaction } from '../../../src/store/database.js';
import { forgetOld } from '../../../src/store/forget-old.js';
import { AnsweredMeanwhileError, findAnswer, keepAnswer } from '../../../src/store/idempotency.js';
import { TENANT, TestShard } from './test-shard.js';

const ANSWER = { status: 201, location: null, answer: '{}', ids: null };
const request = (key: string, hash = 'a') => ({ tenant: TENANT, key, hash: Buffer.from(hash) });

it('answers are removed by age in portions, and young ones stay', async () => {
  const shard = await TestShard.forTest();
  const term = await shard.lead();
  await shard.pool.query(
    `INSERT INTO punctual.idempotency (tenant, key, request, status, answer, created_at)
     SELECT $1, i::text, '', 201, '{}', i FROM generate_series(1, 1200) i`,
    [TENANT],
  );
  const before = { minutes: 0, answers: 1_101 };
  let steps = 1;
  while (await forgetOld(shard.hot, term, before)) steps += 1;
  expect(steps).toBe(3);
  expect(await shard.count('idempotency')).toBe(100);
  expect(await findAnswer(shard.hot, TENANT, '1101', 0)).not.toBeNull();
});

it('an answer that is too old does not count, whether it has been removed or not', async () => {
  const shard = await TestShard.forTest();
  const keep = (hash: string, now: number, oldest: number) =>
    inTransaction(shard.hot, (db) => keepAnswer(db, request('k', hash), ANSWER, { now, oldest }));
  await keep('first', 1_000, 0);
  expect(await findAnswer(shard.hot, TENANT, 'k', 1_001)).toBeNull();
  await expect(keep('second', 1_500, 1_000)).rejects.toThrow(AnsweredMeanwhileError);
  await keep('second', 2_000, 1_001);
  expect(await findAnswer(shard.hot, TENANT, 'k', 1_001)).toMatchObject({ request: Buffer.from('second') });
});

it('of two transactions with one key, the second waits for the first and finds its answer, or takes its place', async () => {
  const shard = await TestShard.forTest();
  for (const outcome of ['COMMIT', 'ROLLBACK']) {
    const first = await shard.hot.connect();
    await first.query('BEGIN');
    await keepAnswer(first, request(outcome), ANSWER, { now: 1, oldest: 0 });
    const second = inTransaction(shard.hot, (db) =>
      keepAnswer(db, request(outcome), ANSWER, { now: 1, oldest: 0 }),
    );
    const settled = second.then(
      () => 'kept',
      (error: Error) => error.name,
    );
    await first.query(outcome);
    first.release();
    expect(await settled).toBe(outcome === 'COMMIT' ? 'AnsweredMeanwhileError' : 'kept');
  }
});
