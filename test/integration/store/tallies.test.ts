import { describe, expect, it } from 'vitest';
import { bucketOf, emptyHistogram } from '../../../src/core/histogram.js';
import { COUNTERS, type Counter } from '../../../src/core/wire.js';
import { claimJobs, claimKnownJobs } from '../../../src/store/claim-jobs.js';
import { endWaitingJobs } from '../../../src/store/end-waiting-jobs.js';
import { forgetOld } from '../../../src/store/forget-old.js';
import { redriveJobs } from '../../../src/store/place-jobs.js';
import { addStale, foldTallies, readMinutes, readTotals, type Tally } from '../../../src/store/tallies.js';
import { nobody, TENANT, TestShard, WORKER } from './test-shard.js';

const MINUTE_MS = 60_000;
/** Folds everything, the current minute included. */
const everything = () => Date.now() + MINUTE_MS;

function counts(tally: Tally): Partial<Record<Counter, number>> {
  return Object.fromEntries(COUNTERS.map((name) => [name, tally[name]]).filter(([, count]) => count !== 0));
}

function sumOf(minutes: readonly Tally[]): Partial<Record<Counter, number>> {
  const sums = COUNTERS.map(
    (name) => [name, minutes.reduce((sum, minute) => sum + minute[name], 0)] as const,
  );
  return Object.fromEntries(sums.filter(([, count]) => count !== 0));
}

const total = (histogram: readonly number[]) => histogram.reduce((sum, count) => sum + count, 0);

describe('counts', () => {
  it('are exact for all that happens to jobs, per tenant and in all, before and after folding', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    const ids = await shard.submitMany(8);
    const theirs = await shard.submit({}, { tenant: 'globex' });
    const held = await shard.submit({}, { held: true });
    await shard.pool.query(`SELECT punctual.submit_job($1, '{"task":"greet"}')`, [TENANT]);
    await shard.submit({ key: 'once' });
    await shard.submit({ key: 'once' });

    const intents = ids.slice(0, 6).map((id) => ({ id, fence: 1, worker: WORKER }));
    const expected = new Map([[TENANT, { jobs: 6, lateness: [4, 2], latenessMs: 7 }]]);
    await claimJobs(shard.hot, term, intents, Date.now(), expected);
    await shard.claim(term, [theirs]);
    await shard.finish(term, [{ id: ids[0]! }, { id: ids[1]! }, { id: theirs }, { id: ids[7]! }]);
    await shard.fail(term, ids[2]!);
    await shard.retry(term, ids[3]!);
    await shard.retry(term, ids[4]!, 1, { outcome: 'lost' });
    await redriveJobs(shard.hot, term, TENANT, [ids[2]!], Date.now());
    const end = (id: string) => [{ id, state: 'cancelled' as const, error: null }];
    await endWaitingJobs(shard.hot, term, 'live', end(ids[6]!), Date.now());
    await endWaitingJobs(shard.hot, term, 'later', [{ ...end(held)[0]!, state: 'failed' }], Date.now());
    await addStale(shard.hot, term, [{ tenant: TENANT, completions: 2, failures: 3 }], Date.now());

    const ours = {
      jobsSubmitted: 11,
      jobsAssigned: 6,
      jobsCompleted: 2,
      jobsFailed: 2,
      jobsCancelled: 1,
      jobsRetried: 2,
      jobsRequeued: 1,
      staleCompletions: 2,
      staleFailures: 3,
    };
    const all = { ...ours, leaderElections: 1, jobsSubmitted: 12, jobsAssigned: 7, jobsCompleted: 3 };
    for (let fold = 0; fold < 3; fold++) {
      expect(counts(await readTotals(shard.pool, TENANT))).toEqual(ours);
      expect(counts(await readTotals(shard.pool, null))).toEqual(all);
      expect(sumOf(await readMinutes(shard.pool, TENANT, 0, Number.MAX_SAFE_INTEGER))).toEqual(ours);
      expect(await readTotals(shard.pool, TENANT)).toMatchObject({ lateness: [4, 2], latenessMs: 7 });
      expect(sumOf(await readMinutes(shard.pool, null, 0, Number.MAX_SAFE_INTEGER))).toEqual(all);
      await foldTallies(shard.hot, term, everything());
      expect(await shard.count('tallies')).toBe(0);
    }
  });

  it.each([claimJobs, claimKnownJobs])(
    'of lateness leave out what was to be claimed and was not',
    async (claim) => {
      const shard = await TestShard.forTest();
      const term = await shard.lead();
      const [ended, first, again] = await shard.submitMany(3);
      const theirs = await shard.submit({}, { tenant: 'globex' });
      await shard.claim(term, [ended!, again!]);
      await shard.finish(term, [{ id: ended! }]);
      await shard.retry(term, again!);
      await shard.pool.query('DELETE FROM punctual.tallies');
      await shard.pool.query('UPDATE punctual.jobs SET run_at = 1000');
      const intents = [ended!, first!, again!, theirs].map((id) => ({
        ...{ id, fence: id === again ? 2 : 1, worker: WORKER },
      }));
      const [ours, others] = [emptyHistogram(), emptyHistogram()];
      ours[bucketOf(40)] = 2;
      others[bucketOf(40)] = 1;
      const expected = new Map([
        [TENANT, { jobs: 3, lateness: ours, latenessMs: 80 }],
        ['globex', { jobs: 1, lateness: others, latenessMs: 40 }],
      ]);
      await claim(shard.hot, term, intents, 1_040, expected, []);
      const counted = { lateness: others, latenessMs: 40 };
      expect(await readTotals(shard.pool, TENANT)).toMatchObject({ jobsAssigned: 2, ...counted });
      expect(await readTotals(shard.pool, 'globex')).toMatchObject({ jobsAssigned: 1, ...counted });
    },
  );

  it('that end or begin nothing are not made', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    await foldTallies(shard.hot, term, everything());
    const nobodys = nobody();
    await shard.claim(term, [nobodys]);
    await shard.finish(term, [{ id: nobodys }]);
    await redriveJobs(shard.hot, term, TENANT, [nobodys], Date.now());
    expect(await shard.count('tallies')).toBe(0);
  });

  it('stay exact while jobs are submitted, end and are folded at the same time', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    const JOBS = 400;
    let working = true;
    const folding = (async () => {
      while (working) await foldTallies(shard.hot, term, everything());
    })();
    const reading = (async () => {
      let seen = 0;
      while (working) {
        const { jobsCompleted, jobsSubmitted } = await readTotals(shard.pool, TENANT);
        expect(jobsCompleted).toBeGreaterThanOrEqual(seen);
        expect(jobsCompleted).toBeLessThanOrEqual(jobsSubmitted);
        seen = jobsCompleted;
      }
    })();
    const lanes = Array.from({ length: 4 }, async () => {
      for (let i = 0; i < JOBS / 4; i += 5) {
        const ids = await shard.submitMany(5);
        await shard.claim(term, ids);
        await shard.finish(
          term,
          ids.map((id) => ({ id })),
        );
      }
    });
    await Promise.all(lanes);
    working = false;
    await Promise.all([folding, reading]);
    const exact = { jobsSubmitted: JOBS, jobsAssigned: JOBS, jobsCompleted: JOBS };
    expect(counts(await readTotals(shard.pool, TENANT))).toEqual(exact);
    await foldTallies(shard.hot, term, everything());
    expect(counts(await readTotals(shard.pool, TENANT))).toEqual(exact);
    expect(sumOf(await readMinutes(shard.pool, TENANT, 0, Number.MAX_SAFE_INTEGER))).toEqual(exact);
  });
});

it("a great many counts are folded and forgotten in steps that each keep within a leader's deadline", async () => {
  const shard = await TestShard.forTest();
  const term = await shard.lead();
  const ROWS = 30_000;
  await shard.pool.query(
    `INSERT INTO punctual.tallies (at, tenant, jobs_assigned, lateness)
     SELECT (n % 15000)::bigint * 60000, $2, 1, array_fill(1::bigint, ARRAY[40]) FROM generate_series(1, $1::int) n`,
    [ROWS, TENANT],
  );
  let slowest = 0;
  const timed = async (step: () => Promise<boolean>) => {
    const startedAt = performance.now();
    const more = await step();
    slowest = Math.max(slowest, performance.now() - startedAt);
    return more;
  };
  let steps = 1;
  while (await timed(() => foldTallies(shard.hot, term, everything()))) steps += 1;
  expect(steps).toBeGreaterThan(3);
  expect(await shard.count('tallies')).toBe(0);
  const totals = await readTotals(shard.pool, TENANT);
  expect([totals.jobsAssigned, total(totals.lateness)]).toEqual([ROWS, 40 * ROWS]);
  while (await timed(() => forgetOld(shard.hot, term, { minutes: everything(), answers: 0 }))) steps += 1;
  expect(await shard.count('tally_minutes')).toBe(0);
  expect(slowest).toBeLessThan(4_000);
});

describe('minutes', () => {
  it('hold what happened in them, oldest first, and are forgotten without the totals', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    const stale = (completions: number) => [{ tenant: TENANT, completions, failures: 0 }];
    const first = 1_000 * MINUTE_MS;
    await addStale(shard.hot, term, stale(1), first + 59_999);
    await addStale(shard.hot, term, stale(2), first + MINUTE_MS);
    await addStale(shard.hot, term, stale(4), first + 2 * MINUTE_MS - 1);
    // Only what lies before the moment is folded; what came later is read from where it was appended.
    await foldTallies(shard.hot, term, first + MINUTE_MS);
    await addStale(shard.hot, term, stale(8), first);
    await foldTallies(shard.hot, term, first + MINUTE_MS);
    const shown = async () =>
      (await readMinutes(shard.pool, TENANT, first, Number.MAX_SAFE_INTEGER)).map((each) => [
        each.minute - first,
        each.staleCompletions,
      ]);
    expect(await shown()).toEqual([
      [0, 9],
      [MINUTE_MS, 6],
    ]);
    await foldTallies(shard.hot, term, everything());
    await forgetOld(shard.hot, term, { minutes: first + MINUTE_MS, answers: 0 });
    expect(await shown()).toEqual([[MINUTE_MS, 6]]);
    expect((await readTotals(shard.pool, TENANT)).staleCompletions).toBe(15);
  });

  it('add up lateness bucket by bucket', async () => {
    const shard = await TestShard.forTest();
    const term = await shard.lead();
    for (const lateness of [
      [1, 0, 2],
      [0, 5, 1],
    ]) {
      const intents = [{ id: await shard.submit(), fence: 1, worker: WORKER }];
      const expected = new Map([[TENANT, { jobs: 1, lateness, latenessMs: 5 }]]);
      await claimJobs(shard.hot, term, intents, Date.now(), expected);
      await foldTallies(shard.hot, term, everything());
    }
    expect(await readTotals(shard.pool, TENANT)).toMatchObject({ lateness: [1, 5, 3], latenessMs: 10 });
    expect(
      (await readMinutes(shard.pool, null, 0, Number.MAX_SAFE_INTEGER))
        .map((each) => total(each.lateness))
        .reduce((a, b) => a + b),
    ).toBe(9);
  });
});
