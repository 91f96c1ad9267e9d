import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Bucket, defaultBurst, formatRate, type Rate, readRate } from './rate.js';

const rates: fc.Arbitrary<Rate> = fc.record({
  limit: fc.integer({ min: 1, max: 1_000 }),
  perMs: fc.constantFrom(100, 1_000, 60_000, 3_600_000),
  burst: fc.integer({ min: 1, max: 50 }),
});

/** Draws whenever the bucket is open at one of the moments, as a greedy caller would. */
function greedy(bucket: Bucket, moments: readonly number[]): number[] {
  const drawn: number[] = [];
  for (const now of moments) {
    while (bucket.isOpen(now)) {
      bucket.draw(now);
      drawn.push(now);
    }
  }
  return drawn;
}

/** A moment on the steady clock; the database's has been set back by the lag. */
function clockAt(steady: number, lag = 0) {
  return { steady: () => steady, now: () => steady - lag };
}

const moments = fc
  .array(fc.integer({ min: 0, max: 500 }), { maxLength: 60 })
  .map((gaps) => gaps.map((_, i) => 1_000_000 + gaps.slice(0, i + 1).reduce((a, b) => a + b, 0)));

/** The most draws in any span of the given moments, beyond what the rate lets through in it. */
function worstExcess(rate: Rate, drawn: readonly number[]): number {
  let worst = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < drawn.length; i++) {
    for (let j = i; j < drawn.length; j++) {
      const allowed = rate.burst + (rate.limit * (drawn[j]! - drawn[i]!)) / rate.perMs;
      worst = Math.max(worst, j - i + 1 - allowed);
    }
  }
  return worst;
}

describe('a token bucket', () => {
  it('never lets more through in any span than its burst and its rate', () => {
    fc.assert(
      fc.property(rates, moments, (rate, at) => {
        const drawn = greedy(new Bucket({ ...rate, limit: Math.min(rate.limit, 50) }, 0), at);
        expect(worstExcess({ ...rate, limit: Math.min(rate.limit, 50) }, drawn)).toBeLessThanOrEqual(1e-6);
      }),
      { numRuns: 200 },
    );
  });

  it('keeps to its rate across a hand-over when its moment is handed on, and when it is not known', () => {
    fc.assert(
      fc.property(rates, moments, fc.nat(59), (given, at, cut) => {
        const rate = { ...given, limit: Math.min(given.limit, 50) };
        const first = new Bucket(rate, 0);
        const before = greedy(first, at.slice(0, cut));
        const clock = clockAt(at[cut] ?? 0);
        const after = greedy(Bucket.resumed(rate, first.fullAt(clock), clock), at.slice(cut));
        expect(worstExcess(rate, [...before, ...after])).toBeLessThanOrEqual(1e-6);
      }),
      { numRuns: 100 },
    );
    const rate = { limit: 10, perMs: 1_000, burst: 5 };
    expect(greedy(Bucket.drained(rate, 5_000), [5_000, 5_050, 5_100])).toEqual([5_000, 5_100]);
  });

  it('reaches its rate when there is always something to draw', () => {
    const rate = { limit: 500, perMs: 1_000, burst: defaultBurst(500, 1_000) };
    const everyTwo = Array.from({ length: 5_000 }, (_, i) => 1_000 + i * 2);
    const drawn = greedy(new Bucket(rate, 0), everyTwo);
    expect(drawn.length).toBeGreaterThanOrEqual(5_000);
    expect(drawn.length).toBeLessThanOrEqual(5_000 + rate.burst);
  });

  it('that others left more than empty is empty, and no more', () => {
    const rate = { limit: 10, perMs: 1_000, burst: 3 };
    expect(Bucket.resumed(rate, 9_000, clockAt(1_000)).opensAt).toBe(1_100);
    expect(Bucket.resumed(rate, 1_250, clockAt(1_000)).opensAt).toBe(1_050);
    expect(Bucket.resumed(rate, 0, clockAt(1_000)).isOpen(1_000)).toBe(true);
  });

  it('that others left in debt, for a batch that started as a whole, is not forgiven its debt', () => {
    const rate = { limit: 10, perMs: 1_000, burst: 3 };
    const bucket = new Bucket(rate, 0);
    for (let member = 0; member < 20; member += 1) bucket.draw(1_000);
    expect(bucket.debt(1_000)).toBe(17);
    const { fullAt, debt } = bucket.mark(clockAt(1_000));
    expect(Bucket.resumed(rate, fullAt, clockAt(1_000), debt).opensAt).toBe(bucket.opensAt);
    expect(bucket.opensAt).toBe(2_800);
    // Without it, the next leader would let the queue go on as if the batch had been three jobs.
    expect(Bucket.resumed(rate, fullAt, clockAt(1_000)).opensAt).toBe(1_100);
  });

  it('keeps to its rate and makes nobody wait longer than that, however often the clock is set back', () => {
    const setBacks = fc.array(fc.nat({ max: 3_600_000 }), { minLength: 60, maxLength: 60 });
    fc.assert(
      fc.property(rates, moments, setBacks, (given, at, back) => {
        const rate = { ...given, limit: Math.min(given.limit, 50) };
        const intervalMs = rate.perMs / rate.limit;
        const drawn: number[] = [];
        let lag = 0;
        let bucket = new Bucket(rate, 0);
        for (const [i, steady] of at.entries()) {
          const fullAt = bucket.fullAt(clockAt(steady, lag));
          lag += back[i]!;
          // Every other moment another leader goes on with what the last one has put down.
          if (i % 2 === 0) bucket = Bucket.resumed(rate, fullAt, clockAt(steady, lag));
          expect(bucket.opensAt - steady).toBeLessThanOrEqual(intervalMs + 1);
          drawn.push(...greedy(bucket, [steady]));
        }
        expect(worstExcess(rate, drawn)).toBeLessThanOrEqual(1e-6);
      }),
      { numRuns: 100 },
    );
  });

  it('gives a draw back that came to nothing', () => {
    const bucket = new Bucket({ limit: 1, perMs: 1_000, burst: 1 }, 0);
    bucket.draw(10);
    expect(bucket.isOpen(10)).toBe(false);
    bucket.refund();
    expect(bucket.isOpen(10)).toBe(true);
  });

  it('lets single starts through evenly at low rates, and several at once at high ones', () => {
    expect(defaultBurst(5, 1_000)).toBe(1);
    expect(defaultBurst(20, 1_000)).toBe(1);
    expect(defaultBurst(1_000, 1_000)).toBe(50);
    expect(defaultBurst(1, 3_600_000)).toBe(1);
  });
});

describe('a rate as people write it', () => {
  it.each([
    ['100/1s', { limit: 100, per: '1s' }],
    ['1/30d', { limit: 1, per: '30d' }],
    ['1000000/1ms', { limit: 1_000_000, per: '1ms' }],
  ] as const)('%s is read and written', (text, rate) => {
    expect(readRate(text)).toEqual(rate);
    expect(formatRate(rate)).toBe(text);
  });

  it.each([
    '',
    '100',
    '100/',
    '/1s',
    '100/s',
    '0/1s',
    '1.5/1s',
    '-1/1s',
    '1/0s',
    '1/31d',
    '1/1s/2',
    '1000001/1s',
  ])('%j is no rate', (text) => expect(readRate(text)).toBeNull());

  it('keeps a burst that is given in fields, if it is a count', () => {
    expect(readRate({ limit: 5, per: '1s', burst: 2 })).toEqual({ limit: 5, per: '1s', burst: 2 });
    expect(readRate({ limit: 5, per: '1s', burst: 0 })).toBeNull();
    expect(readRate({ limit: 0.5, per: '1s' })).toBeNull();
  });
});
