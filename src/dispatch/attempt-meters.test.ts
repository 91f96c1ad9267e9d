import { expect, it } from 'vitest';
import { TestClock } from '../../test/test-clock.js';
import { AttemptMeters } from './attempt-meters.js';
import type { NeedsInfo, QueueInfo } from './directory.js';
import type { Running } from './running.js';

const IDLE_MS = 600_000;

/** Queue n is called `qN`, needs n are those of the handler `tN`; needs above 100 add labels to the handler. */
function setUp(limit: number) {
  const clock = new TestClock();
  const directory = {
    queue: (id: number) => ({ id, name: id === 99 ? 'other' : `q${id}` }) as QueueInfo,
    needsOf: (id: number) => ({ id, target: 'handler', handler: `t${id % 100}` }) as NeedsInfo,
  };
  const meters = new AttemptMeters(directory, clock, limit);
  const attempt = (queue: number, needs: number) =>
    ({ queue, needs, runAt: 1_000, claimedAt: 1_040 }) as unknown as Running;
  return {
    clock,
    meters,
    run: (queue: number, needs: number) => {
      meters.claimed(attempt(queue, needs));
      meters.ended(attempt(queue, needs), 'succeeded', 1_050, 3_050);
    },
    attempt,
    counts: () =>
      Object.fromEntries(
        meters.figures().map(({ queue, task, outcomes }) => [`${queue}/${task}`, outcomes.succeeded]),
      ),
  };
}

it('attempts are counted by queue and task, whatever else they need', () => {
  const { meters, run, counts, attempt } = setUp(10);
  for (const [queue, needs] of [
    [1, 1],
    [1, 1],
    [1, 101],
    [2, 1],
    [1, 1],
  ] as const)
    run(queue, needs);
  expect(counts()).toEqual({ 'q1/t1': 4, 'q2/t1': 1 });
  meters.ended(attempt(2, 1), 'lost', null, 1_100);
  const [, second] = meters.figures();
  expect(second!.outcomes).toMatchObject({ succeeded: 1, failed: 0, lost: 1 });
  expect(second!.waiting).toMatchObject({ sumMs: 40 });
  // Without a start, an attempt ran since its claim.
  expect(second!.runTime).toMatchObject({ sumMs: 2_000 + 60 });
  for (const { counts: buckets } of [second!.waiting, second!.runTime])
    expect(buckets.reduce((a, b) => a + b)).toBe(buckets === second!.waiting.counts ? 1 : 2);
});

it('pairs beyond the limit are counted together, also with what is really called `other`', () => {
  const { run, counts } = setUp(2);
  for (let queue = 1; queue <= 50; queue++) run(queue, 1);
  run(1, 1);
  run(99, 1);
  expect(counts()).toEqual({ 'q1/t1': 2, 'q2/t1': 1, 'other/other': 49 });
  const none = setUp(0);
  none.run(1, 1);
  expect(none.counts()).toEqual({ 'other/other': 1 });
});

it('a pair that was idle for long makes room for another; one that is busy keeps its place', () => {
  const { clock, run, counts } = setUp(2);
  run(1, 1);
  run(2, 2);
  clock.advance(IDLE_MS);
  run(3, 3);
  clock.advance(IDLE_MS);
  run(1, 1);
  run(3, 3);
  expect(counts()).toEqual({ 'q1/t1': 2, 'q3/t3': 1, 'other/other': 1 });
});
