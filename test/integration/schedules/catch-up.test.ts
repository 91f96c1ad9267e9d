import { expect, it } from 'vitest';
import { MINUTE, ScheduleTester, SECOND } from './schedule-tester.js';

it.each([
  ['none', ['+60s…+300s missed downtime (5)']],
  ['latest', ['+60s…+240s missed downtime (4)', '+300s late']],
  ['all', ['+60s late', '+120s late', '+180s late', '+240s late', '+300s late']],
  [{ within: '150s' }, ['+60s…+180s missed downtime (3)', '+240s late', '+300s late']],
])(
  'after five minutes without a node, catch-up %j does what it says and no more',
  async (catchUp, expected) => {
    const tester = await ScheduleTester.start();
    const { createdAt } = await tester.create({ every: '1m', catchUp });
    const since = Date.parse(createdAt);
    await tester.stopFor(5 * MINUTE + 40 * SECOND);
    // A leader that is slow to catch up may already look into their lateness in the same pass.
    await expect
      .poll(async () => (await tester.lines(since)).map((row) => row.replace('pending', 'late')), {
        timeout: 20_000,
      })
      .toEqual(expected);
    // Otherwise lateness is looked into a little later.
    tester.clock.advance(5 * SECOND);
    await tester.ledgerBecomes(since, expected);
    const missed = expected.flatMap((row) => /\((\d+)\)/.exec(row)?.[1] ?? []).map(Number);
    const late = expected.filter((row) => row.endsWith('late')).length;
    expect(await tester.stats()).toMatchObject({ occurrencesMissed: missed[0] ?? 0, occurrencesLate: late });
    // From then on everything is as if nothing had happened.
    tester.clock.advance(15 * SECOND);
    await tester.ledgerBecomes(since, [...expected, '+360s pending']);
  },
);

it('what is late by less than the bound runs, whatever the policy says, and is not missed', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '1s', catchUp: 'none' });
  await tester.stopFor(20 * SECOND);
  const since = Date.parse(createdAt);
  const expected = Array.from({ length: 20 }, (_, i) => `+${i + 1}s pending`);
  await tester.ledgerBecomes(since, expected);
  expect(await tester.stats()).toMatchObject({ occurrencesMissed: 0, occurrencesLate: 0 });
});

it('a year of a schedule every second is passed over at once, as one range', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({
    every: '1s',
    catchUp: 'latest',
    endAt: '2099-01-01T00:00:00Z',
  });
  const year = 365 * 24 * 60 * MINUTE;
  await tester.node.node.stop();
  tester.clock.advance(year);
  const before = performance.now();
  await tester.startNode();
  // Those of the last half minute are still on time; everything before is one row.
  const since = Date.parse(createdAt);
  const first = `+1s…+${year / SECOND - 30}s missed downtime (${year / SECOND - 30})`;
  const rest = Array.from({ length: 30 }, (_, i) => `+${year / SECOND - 29 + i}s pending`);
  await tester.ledgerBecomes(since, [first, ...rest]);
  expect(performance.now() - before).toBeLessThan(10_000);
  expect(await tester.stats()).toMatchObject({ occurrencesMissed: year / SECOND - 30 });
});

it('more than one transaction takes is caught up in several, none twice', async () => {
  const tester = await ScheduleTester.start();
  const { createdAt } = await tester.create({ every: '1s', catchUp: 'all' });
  await tester.stopFor(5_000 * SECOND);
  const since = Date.parse(createdAt);
  const expected = Array.from({ length: 5_000 }, (_, i) => i + 1);
  await expect
    .poll(async () => (await tester.ledger()).length, { timeout: 20_000 })
    .toBeGreaterThanOrEqual(5_000);
  const ledger = await tester.ledger();
  expect(ledger.map((row) => (Date.parse(row.at) - since) / SECOND)).toEqual(expected);
  expect(new Set(ledger.map((row) => row.jobId)).size).toBe(5_000);
});
