import { expect, it } from 'vitest';
import { Repetition } from './repetition.js';

it('lets the same words through once per window, and other words at any time', () => {
  let now = 0;
  const repetition = new Repetition(1_000, () => now);
  expect(repetition.isNews('a')).toBe(true);
  expect(repetition.isNews('a')).toBe(false);
  expect(repetition.isNews('b')).toBe(true);
  now = 999;
  expect(repetition.isNews('a')).toBe(false);
  now = 1_000;
  expect(repetition.isNews('a')).toBe(true);
});
