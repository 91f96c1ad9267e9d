import { describe, expect, it } from 'vitest';
import type { KeyView } from '../core/access.js';
import { lastUseOf } from './key-commands.js';

describe('the last use of a key', () => {
  const now = Date.parse('2026-03-10T12:20:00Z');
  const of = (lastUsedAt: string | null, createdAt = '2025-01-01T00:00:00Z') =>
    lastUseOf({ lastUsedAt, createdAt } as KeyView, now);

  it.each([
    ['2026-03-10T12:00:00Z', 'within the last hour'],
    ['2026-03-10T11:00:00Z', '1h ago'],
    ['2026-03-09T13:00:00Z', '23h ago'],
    ['2026-03-09T12:00:00Z', '1d ago'],
    ['2026-03-01T03:00:00Z', '9d ago'],
    // The clock of the database may be ahead.
    ['2026-03-10T13:00:00Z', 'within the last hour'],
    [null, null],
  ])('in the hour of %s is shown as %s', (lastUsedAt, text) => {
    expect(of(lastUsedAt)).toBe(text);
  });

  it('is never shown as before the key was made', () => {
    expect(of('2026-03-10T11:00:00Z', '2026-03-10T11:50:00Z')).toBe('within the last hour');
    expect(of('2026-03-10T08:00:00Z', '2026-03-10T08:50:00Z')).toBe('3h ago');
  });
});
