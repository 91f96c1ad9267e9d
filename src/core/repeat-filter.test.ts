import { expect, it } from 'vitest';
import { RepeatFilter } from './repeat-filter.js';

it('lets the same words through once per window, and other words at any time', () => {
  let now = 0;
  const repeats = new RepeatFilter(1_000, () => now);
  expect(repeats.isNew('a')).toBe(true);
  expect(repeats.isNew('a')).toBe(false);
  expect(repeats.isNew('b')).toBe(true);
  now = 999;
  expect(repeats.isNew('a')).toBe(false);
  now = 1_000;
  expect(repeats.isNew('a')).toBe(true);
});

it('lets at most a thousand different messages through in a window', () => {
  const repeats = new RepeatFilter(1_000, () => 0);
  const passed = Array.from({ length: 1_500 }, (_, index) => repeats.isNew(`message ${index}`));
  expect(passed.filter(Boolean)).toHaveLength(1_000);
});
