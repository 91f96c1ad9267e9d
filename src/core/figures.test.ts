import fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Figures, mergeFigures } from './figures.js';

const count = fc.nat({ max: 1_000 });
const name = fc.constantFrom('a', 'b', 'other');
const histogram = fc.record({ counts: fc.tuple(count, count), sumMs: count });
const outcomes = fc.record({
  succeeded: count,
  failed: count,
  'timed-out': count,
  lost: count,
  cancelled: count,
});
const figures: fc.Arbitrary<Figures> = fc.record({
  totals: fc.record({
    ...{ running: count, waiting: count, ready: count, unserved: count, workers: count, slots: count },
    ...{ batchesWaiting: count, batchesRunning: count, slotsKept: count, endsPending: count },
    ...{ originsOpen: count, originsPaused: count },
  }),
  queues: fc.uniqueArray(
    fc.record({ queue: name, ready: count, running: count, unserved: count, oldestReadyMs: count }),
    { selector: ({ queue }) => queue },
  ),
  attempts: fc.uniqueArray(
    fc.record({ queue: name, task: name, waiting: histogram, runTime: histogram, outcomes }),
    { selector: ({ queue, task }) => `${queue}/${task}` },
  ),
  workflows: fc.option(fc.record({ time: histogram, release: histogram }), { nil: undefined }),
});

it('the figures of several shards add up, each name once', () => {
  fc.assert(
    fc.property(fc.array(figures), (all) => {
      const merged = mergeFigures(all);
      const sum = (of: (each: Figures) => number) => all.reduce((total, each) => total + of(each), 0);
      expect(merged.totals.ready).toBe(sum(({ totals }) => totals.ready));
      const sums: ((each: Figures) => number)[] = [
        ({ queues }) => queues.reduce((total, { ready }) => total + ready, 0),
        ({ workflows }) => workflows?.time.sumMs ?? 0,
        ({ workflows }) => workflows?.release.counts[1] ?? 0,
        ({ attempts }) => attempts.reduce((total, { runTime }) => total + runTime.sumMs, 0),
        ({ attempts }) => attempts.reduce((total, { waiting }) => total + waiting.counts[1]!, 0),
        ({ attempts }) => attempts.reduce((total, { outcomes: { lost } }) => total + lost, 0),
      ];
      for (const of of sums) expect(of(merged)).toBe(sum(of));
      const names = merged.attempts.map(({ queue, task }) => `${queue}/${task}`);
      expect(new Set(names).size).toBe(names.length);
      expect(new Set(merged.queues.map(({ queue }) => queue)).size).toBe(merged.queues.length);
    }),
  );
});
