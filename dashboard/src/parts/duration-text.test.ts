import { expect, it } from 'vitest';
import {
  countText,
  durationText,
  plural,
  relativeText,
  shortCountText,
  shortDurationText,
} from './duration-text.js';

it.each([
  [0, '0 ms'],
  [999.4, '999 ms'],
  [1_000, '1 s'],
  [3_200, '3.2 s'],
  [59_999, '1 min'],
  [200_000, '3 min 20 s'],
  [7_200_000, '2 h'],
  [93_600_000, '1 d 2 h'],
  [-1_500, '−1.5 s'],
])('a duration of %d ms reads as %s', (ms, text) => {
  expect(durationText(ms)).toBe(text);
});

it('counts and short durations fit where there is little room', () => {
  expect([shortDurationText(200_000), shortCountText(9_999), shortCountText(1_234_567)]).toEqual([
    '3 min',
    '9,999',
    '1.2M',
  ]);
  expect([countText(1_234_567), plural(1, 'herd'), plural(2, 'retry', 'retries')]).toEqual([
    '1,234,567',
    '1 herd',
    '2 retries',
  ]);
});

it('moments are told from now on in whole units', () => {
  const now = 1_000_000_000;
  expect(relativeText(now + 300, now)).toBe('now');
  expect(relativeText(now - 59_000, now)).toBe('59s ago');
  expect(relativeText(now + 3 * 3_600_000 + 5, now)).toBe('in 3h');
});
