import { describe, expect, it } from 'vitest';
import { Ledger } from './ledger.js';
import { now } from './moments.js';
import { problemsOf } from './slices/throughput.js';

describe('the ledger', () => {
  it('finds jobs that never started and jobs that started twice', async () => {
    const ledger = new Ledger();
    for (const number of [0, 2, 2, 100_000]) ledger.start(number);
    const account = await ledger.account(4);
    expect(account).toMatchObject({ started: 4, missing: 2, doubled: 1 });
    expect(problemsOf(account)).toEqual(['2 jobs never started', '1 jobs started more than once']);
  });

  it('counts starts by second, and a second without any as zero', async () => {
    const ledger = new Ledger();
    ledger.begin(now() - 2_500);
    ledger.start(0);
    ledger.start(1);
    expect((await ledger.account(2)).perSecond).toEqual([0, 0, 2]);
  });

  it('tells those who wait as soon as enough have started', async () => {
    const ledger = new Ledger();
    const told: number[] = [];
    const waiting = [3, 1].map((count) => ledger.reached(count).then(() => told.push(count)));
    ledger.start(0);
    await waiting[1];
    expect(told).toEqual([1]);
    ledger.start(1);
    ledger.start(2);
    await Promise.all(waiting);
    expect(told).toEqual([1, 3]);
  });
});
