import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEFAULT_BACKOFF } from './retry.js';
import { type AttemptEnd, decide, type RunningJob } from './transition.js';

const error = { message: 'no' };

function job(change: Partial<RunningJob> = {}): RunningJob {
  return {
    failures: 0,
    losses: 0,
    maxAttempts: 4,
    maxLosses: 3,
    atMostOnce: false,
    backoff: DEFAULT_BACKOFF,
    cancelledAt: null,
    ...change,
  };
}

const anyJob: fc.Arbitrary<RunningJob> = fc
  .record({
    failures: fc.nat(5),
    losses: fc.nat(5),
    maxAttempts: fc.integer({ min: 1, max: 6 }),
    maxLosses: fc.integer({ min: 1, max: 6 }),
    atMostOnce: fc.boolean(),
  })
  .map(job);

const anyEnd: fc.Arbitrary<AttemptEnd> = fc.constantFrom<AttemptEnd[]>(
  { outcome: 'succeeded', result: '1' },
  { outcome: 'failed', error, retryable: true },
  { outcome: 'failed', error, retryable: false },
  { outcome: 'timed-out', error },
  { outcome: 'lost', error },
  { outcome: 'cancelled', error: null },
  { outcome: 'cancelled', error },
);

describe('the end of an attempt', () => {
  it('that succeeded ends the job with its result', () => {
    expect(decide(job(), { outcome: 'succeeded', result: '{"a":1}' }, 0.5)).toEqual({
      kind: 'end',
      state: 'succeeded',
      outcome: 'succeeded',
      result: '{"a":1}',
      error: null,
    });
  });

  it('of a job that somebody cancelled ends it as cancelled, whatever became of the attempt but success', () => {
    const cancelled = job({ cancelledAt: 1 });
    for (const end of [
      { outcome: 'failed', error, retryable: true },
      { outcome: 'timed-out', error },
      { outcome: 'lost', error },
      { outcome: 'cancelled', error: null },
    ] as const) {
      expect(decide(cancelled, end, 0.5)).toMatchObject({
        kind: 'end',
        state: 'cancelled',
        outcome: end.outcome,
      });
    }
    expect(decide(cancelled, { outcome: 'succeeded', result: '1' }, 0.5)).toMatchObject({
      state: 'succeeded',
    });
  });

  it('that was stopped although nobody cancelled the job counts as lost', () => {
    const stopped = { outcome: 'cancelled', error: null } as const;
    expect(decide(job(), stopped, 0.5)).toMatchObject({ kind: 'again', outcome: 'lost' });
    expect(decide(job({ losses: 2 }), stopped, 0.5)).toMatchObject({ kind: 'end', state: 'failed' });
    expect(decide(job({ atMostOnce: true }), stopped, 0.5)).toMatchObject({ kind: 'end', state: 'failed' });
  });

  it('that was cancelled ends the job, however much budget is left', () => {
    expect(decide(job({ cancelledAt: 1 }), { outcome: 'cancelled', error: null }, 0.5)).toEqual({
      kind: 'end',
      state: 'cancelled',
      outcome: 'cancelled',
      result: null,
      error: null,
    });
  });

  it.each(['failed', 'timed-out'] as const)('that %s is followed by another after the backoff', (outcome) => {
    const end: AttemptEnd = outcome === 'failed' ? { outcome, error, retryable: true } : { outcome, error };
    const pauses = [0, 1, 2].map((failures) => decide(job({ failures }), end, 0.5));
    expect(pauses).toEqual(
      [2_000, 4_000, 8_000].map((delayMs) => ({ kind: 'again', outcome, delayMs, error })),
    );
    expect(decide(job({ failures: 3 }), end, 0.5)).toEqual({
      kind: 'end',
      state: 'failed',
      outcome,
      result: null,
      error,
    });
  });

  it('that failed and must not be retried ends the job at once', () => {
    expect(decide(job(), { outcome: 'failed', error, retryable: false }, 0.5)).toMatchObject({
      kind: 'end',
      state: 'failed',
    });
  });

  it('that failed and asks for a later retry is not followed by another before that, nor before the backoff', () => {
    const failing = (retryAfterMs: number) =>
      decide(job(), { outcome: 'failed', error, retryable: true, retryAfterMs }, 0.5);
    const backoff = decide(job(), { outcome: 'failed', error, retryable: true }, 0.5);
    expect(backoff).toMatchObject({ kind: 'again' });
    expect(failing(0)).toEqual(backoff);
    expect(failing(3_600_000)).toMatchObject({ kind: 'again', delayMs: 3_600_000 });
  });

  it('that was handed on goes on, unless the job was cancelled meanwhile', () => {
    expect(decide(job(), { outcome: 'handed-on' }, 0.5)).toEqual({ kind: 'hand-on' });
    expect(decide(job({ cancelledAt: 1 }), { outcome: 'handed-on' }, 0.5)).toMatchObject({
      kind: 'end',
      state: 'cancelled',
      outcome: 'cancelled',
    });
  });

  it('that was lost is followed by another at once, on a budget of its own', () => {
    const lost: AttemptEnd = { outcome: 'lost', error };
    const again = { kind: 'again', outcome: 'lost', delayMs: 0, error };
    expect(decide(job({ failures: 3, losses: 1 }), lost, 0.5)).toEqual(again);
    expect(decide(job({ losses: 2 }), lost, 0.5)).toMatchObject({
      kind: 'end',
      state: 'failed',
      outcome: 'lost',
    });
    expect(decide(job({ losses: 2 }), { outcome: 'failed', error, retryable: true }, 0.5)).toMatchObject({
      kind: 'again',
    });
  });

  it('never starts an at-most-once job again', () => {
    fc.assert(
      fc.property(anyJob, anyEnd, (running, end) => {
        expect(decide({ ...running, atMostOnce: true }, end, 0.5).kind).toBe('end');
      }),
    );
  });

  it('leads to another attempt only within the budget it draws on, and keeps its outcome', () => {
    fc.assert(
      fc.property(anyJob, anyEnd, (running, end) => {
        const decision = decide(running, end, 0.5);
        if (decision.kind === 'hand-on') expect.unreachable();
        expect(decision.outcome).toBe(end.outcome === 'cancelled' ? 'lost' : end.outcome);
        if (decision.kind === 'end') return;
        if (decision.outcome === 'lost') expect(running.losses + 1).toBeLessThan(running.maxLosses);
        else expect(running.failures + 1).toBeLessThan(running.maxAttempts);
      }),
    );
  });

  it('comes sooner or later for every job', () => {
    fc.assert(
      fc.property(anyJob, fc.infiniteStream(anyEnd), (start, ends) => {
        let running = { ...start, failures: 0, losses: 0 };
        const bound = running.maxAttempts + running.maxLosses;
        for (let attempt = 1; attempt <= bound; attempt++) {
          const decision = decide(running, ends.next().value!, 0.5);
          if (decision.kind !== 'again') return;
          if (decision.outcome === 'lost') running = { ...running, losses: running.losses + 1 };
          else running = { ...running, failures: running.failures + 1 };
        }
        expect.unreachable('the job was started more often than its budgets allow');
      }),
    );
  });
});
