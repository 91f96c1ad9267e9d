import { describe, expect, it } from 'vitest';
import { elapsed, humanDuration, relativeTime } from './moment.js';

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

describe('relativeTime', () => {
  const now = Date.parse('2026-12-24T18:00:00Z');

  it('tells past from future', () => {
    expect(relativeTime('2026-12-24T17:59:30Z', now)).toBe('30s ago');
    expect(relativeTime('2026-12-24T18:05:00Z', now)).toBe('in 5m');
    expect(relativeTime('2026-12-24T18:00:00.500Z', now)).toBe('now');
    expect(relativeTime(null, now)).toBe('-');
  });
});

describe('elapsed', () => {
  it('needs both ends', () => {
    expect(elapsed('2026-12-24T18:00:00Z', '2026-12-24T18:00:02.500Z')).toBe('2.5s');
    expect(elapsed(null, '2026-12-24T18:00:02Z')).toBeNull();
  });
});
