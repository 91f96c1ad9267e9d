import { expect, it } from 'vitest';
import { KeyRates } from './key-rates.js';

it('a key may make a second of requests at once, and then as many as its rate says', () => {
  const rates = new KeyRates(10);
  for (let n = 0; n < 10; n++) rates.count('a', 1_000);
  expect(() => rates.count('a', 1_000)).toThrow(expect.objectContaining({ code: 'RATE_LIMITED' }));
  rates.count('b', 1_000);
  rates.count('a', 1_100);
  expect(() => rates.count('a', 1_100)).toThrow(
    expect.objectContaining({ status: 429, retryAfter: expect.closeTo(0.1) }),
  );
});

it('zero is no limit', () => {
  const rates = new KeyRates(0);
  for (let n = 0; n < 1_000; n++) rates.count('a', 0);
});
