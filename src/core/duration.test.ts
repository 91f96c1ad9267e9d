import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { formatDuration, humanDuration, MAX_DURATION_MS, parseDuration } from './duration.js';

describe('durations', () => {
  it.each([
    ['0ms', 0],
    ['250ms', 250],
    ['30s', 30_000],
    ['20m', 1_200_000],
    ['6h', 21_600_000],
    ['2d', 172_800_000],
    ['1.5s', 1_500],
    ['0.25h', 900_000],
    ['1.4ms', 1],
    ['007s', 7_000],
  ])('%s is %d milliseconds', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  it.each([
    '',
    's',
    '5',
    '5 s',
    ' 5s',
    '5s ',
    '5s\n',
    '-5s',
    '+5s',
    '5S',
    '5w',
    '1h30m',
    '.5s',
    '5.s',
    '1e3s',
    '0x5s',
    '1_000ms',
    '1,5s',
    'Infinityms',
    '٣s',
    '1.1234567s',
    '1234567890123456ms',
    '36601d',
    '999999999999999d',
  ])('%j is none', (text) => {
    expect(parseDuration(text)).toBeNull();
  });

  it('may last a hundred years and no longer', () => {
    expect(parseDuration(`${MAX_DURATION_MS}ms`)).toBe(MAX_DURATION_MS);
    expect(parseDuration(`${MAX_DURATION_MS + 1}ms`)).toBeNull();
  });

  it('are written in the largest unit that is exact', () => {
    expect([0, 999, 1_000, 1_500, 60_000, 90_000, 3_600_000, 86_400_000].map(formatDuration)).toEqual([
      '0ms',
      '999ms',
      '1s',
      '1500ms',
      '1m',
      '90s',
      '1h',
      '1d',
    ]);
  });

  it('come back as they were written', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: MAX_DURATION_MS }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
  });

  it('are null or a number of milliseconds within the bounds, whatever the text', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^\d{1,18}(\.\d{1,8})?(ms|s|m|h|d)$/)), (text) => {
        const ms = parseDuration(text);
        expect(ms === null || (Number.isSafeInteger(ms) && ms >= 0 && ms <= MAX_DURATION_MS)).toBe(true);
      }),
    );
  });
});

describe('humanDuration', () => {
  it.each([
    [0, '0ms'],
    [999, '999ms'],
    [1_000, '1s'],
    [4_230, '4.2s'],
    [9_949, '9.9s'],
    [9_950, '10s'],
    [59_400, '59s'],
    [60_000, '1m'],
    [200_000, '3m 20s'],
    [3_600_000, '1h'],
    [18_240_000, '5h 4m'],
    [86_400_000, '1d'],
    [183_600_000, '2d 3h'],
  ])('writes %d ms as %s', (ms, text) => {
    expect(humanDuration(ms)).toBe(text);
  });
});
