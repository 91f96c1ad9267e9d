import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readBatch } from '../../../src/store/batch-rows.js';
import { endBatch, retryBatch } from '../../../src/store/end-batch.js';
import { endWaitingJobs } from '../../../src/store/end-waiting-jobs.js';
import type { TermKey } from '../../../src/store/leader-statement.js';
import { readToAdmit } from '../../../src/store/place-jobs.js';
import { readJob } from '../../../src/store/read-job.js';
import { voidBatch } from '../../../src/store/start-batch.js';
import { TENANT, TestShard, WORKER } from './test-shard.js';

let shard: TestShard;
let term: TermKey;
let close: () => Promise<void>;

beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
  term = await shard.lead();
});
afterAll(() => close());

const stateOf = async (id: string) => (await readJob(shard.hot, TENANT, id))?.state;
const claimsOf = async (ids: readonly string[]) => {
  const { rows } = await shard.pool.query('SELECT job FROM punctual.claims WHERE job = ANY($1)', [ids]);
  return rows.length;
};

describe('the start of a batch', () => {
  it('moves all members to the live jobs and claims every one of them, in one statement', async () => {
    const batch = await shard.submitBatch(term, 3);
    expect(await shard.startBatch(term, batch)).toHaveLength(3);
    expect(await claimsOf(batch.members)).toBe(3);
    for (const id of batch.members)
      expect(await readJob(shard.hot, TENANT, id)).toMatchObject({
        state: 'running',
        worker: WORKER,
        batch: batch.id,
      });
    expect(await readBatch(shard.hot, TENANT, batch.id)).toMatchObject({ state: 'running' });
  });

  it('does nothing if a member is gone, was given up under another fence, or belongs to another batch', async () => {
    const batch = await shard.submitBatch(term, 3);
    const other = await shard.submitBatch(term, 1);
    const foreign = { id: batch.id, members: [...batch.members, ...other.members] };
    expect(await shard.startBatch(term, foreign)).toEqual([]);
    expect(await shard.startBatch(term, batch, 2)).toEqual([]);
    await endWaitingJobs(
      shard.hot,
      term,
      'later',
      [{ id: batch.members[1]!, state: 'cancelled', error: null }],
      Date.now(),
    );
    expect(await shard.startBatch(term, batch)).toEqual([]);
    expect(await claimsOf(foreign.members)).toBe(0);
    expect(await stateOf(batch.members[0]!)).toBe('blocked');
    expect(await readBatch(shard.hot, TENANT, batch.id)).toMatchObject({ state: 'pending', startedAt: null });
  });

  it('starts a thousand members well within a statement timeout', async () => {
    const batch = await shard.submitBatch(term, 1_000);
    const before = performance.now();
    expect(await shard.startBatch(term, batch)).toHaveLength(1_000);
    expect(performance.now() - before).toBeLessThan(1_000);
    expect(await claimsOf(batch.members)).toBe(1_000);
  });

  it('is never made by admission, however long a member has been due', async () => {
    const batch = await shard.submitBatch(term, 2);
    const due = await readToAdmit(shard.hot, Date.now() + 86_400_000, 5_000, []);
    expect(due.filter(({ id }) => batch.members.includes(id))).toEqual([]);
  });
});

describe('a start that is taken back', () => {
  it('lets all members wait again under the next fence, or changes nothing', async () => {
    const batch = await shard.submitBatch(term, 2);
    await shard.startBatch(term, batch);
    const claims = batch.members.map((id) => ({ id, fence: 1, attempt: null as string | null }));
    expect(await voidBatch(shard.hot, term, batch.id, [claims[0]!, { ...claims[1]!, fence: 2 }])).toBe(false);
    expect(await claimsOf(batch.members)).toBe(2);
    const attempt = JSON.stringify({ fence: 1, outcome: 'lost' });
    expect(await voidBatch(shard.hot, term, batch.id, [{ ...claims[0]!, attempt }, claims[1]!])).toBe(true);
    expect(await claimsOf(batch.members)).toBe(0);
    expect(await readJob(shard.hot, TENANT, batch.members[0]!)).toMatchObject({
      ...{
        state: 'blocked',
        attempts: 1,
        batch: batch.id,
        earlier_attempts: [{ fence: 1, outcome: 'lost' }],
      },
    });
    expect(await readJob(shard.hot, TENANT, batch.members[1]!)).toMatchObject({ earlier_attempts: null });
    expect(await shard.startBatch(term, batch)).toEqual([]);
    expect(await shard.startBatch(term, batch, 2)).toHaveLength(2);
  });
});

describe('the end of a batch', () => {
  it('comes once, and not before the last member has ended', async () => {
    const batch = await shard.submitBatch(term, 2);
    await shard.startBatch(term, batch);
    await shard.finish(term, [{ id: batch.members[0]! }]);
    const end = () => endBatch(shard.hot, term, batch.id, 'succeeded', null, Date.now());
    expect(await end()).toBe(false);
    await shard.finish(term, [{ id: batch.members[1]! }]);
    expect([await end(), await end()]).toEqual([true, false]);
  });
});

describe('a retry', () => {
  it('moves all members back, those that succeeded too, with growing fences', async () => {
    const batch = await shard.submitBatch(term, 2);
    await shard.startBatch(term, batch);
    await shard.finish(term, [{ id: batch.members[0]! }]);
    await shard.fail(term, batch.members[1]!);
    await endBatch(shard.hot, term, batch.id, 'failed', null, Date.now());
    const waiting = await retryBatch(shard.hot, term, { ...batch, tenant: TENANT }, Date.now());
    expect(waiting.map(({ fence }) => fence)).toEqual([2, 2]);
    expect(await readBatch(shard.hot, TENANT, batch.id)).toMatchObject({
      state: 'pending',
      run: 2,
      endedAt: null,
    });
    expect(await shard.startBatch(term, batch, 2)).toHaveLength(2);
  });

  it('does nothing if a member has left history', async () => {
    const batch = await shard.submitBatch(term, 2);
    await shard.startBatch(term, batch);
    for (const id of batch.members) await shard.fail(term, id);
    await endBatch(shard.hot, term, batch.id, 'failed', null, Date.now());
    await shard.pool.query('DELETE FROM punctual.job_history WHERE id = $1', [batch.members[0]]);
    expect(await retryBatch(shard.hot, term, { ...batch, tenant: TENANT }, Date.now())).toEqual([]);
    expect(await stateOf(batch.members[1]!)).toBe('failed');
  });
});
