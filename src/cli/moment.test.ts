import { describe, expect, it } from 'vitest';
import { elapsed, relativeTime } from './moment.js';

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
