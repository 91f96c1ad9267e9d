import { describe, expect, it } from 'vitest';
import { ReceiverRates } from './receiver-rates.js';

const attempt = (jobId: string, tenant = 'acme', fence = 1) => ({ tenant, jobId, fence });

/** How many of so many requests at the same moment pass. */
function passed(
  rates: ReceiverRates,
  requests: readonly ReturnType<typeof attempt>[],
  isEnd = false,
): number {
  return requests.filter((request) => {
    try {
      rates.count(request, isEnd, 0);
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: 'RATE_LIMITED' });
      return false;
    }
  }).length;
}

describe('receivers', () => {
  it('make some requests a second about each attempt, and those of others are not held up', () => {
    const rates = new ReceiverRates();
    expect(passed(rates, Array(100).fill(attempt('a')))).toBe(20);
    expect(passed(rates, [attempt('b'), attempt('a', 'acme', 2)])).toBe(2);
    rates.count(attempt('a'), false, 1_000);
  });

  it('of one tenant make so many together, apart from ends', () => {
    const rates = new ReceiverRates();
    const many = Array.from({ length: 3_000 }, (_, index) => attempt(`job-${index}`));
    expect(passed(rates, many)).toBe(2_000);
    expect(passed(rates, [attempt('x', 'other')])).toBe(1);
    expect(passed(rates, [attempt('y')], true)).toBe(1);
  });
});
