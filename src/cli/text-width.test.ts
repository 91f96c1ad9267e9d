import { describe, expect, it } from 'vitest';
import { shortenMiddle, textWidth, truncate } from './text-width.js';

describe('textWidth', () => {
  it.each([
    ['plain text', 10],
    ['', 0],
    ['é', 1],
    ['e\u0301', 1],
    ['会议', 4],
    ['ｆｕｌｌ', 8],
    ['한글', 4],
    ['😀', 2],
    ['👩‍👩‍👧', 2],
    ['❤️', 2],
    ['🇩🇪', 2],
    ['…', 1],
    ['a\u200bb', 2],
  ])('of %j is %i columns', (text, columns) => {
    expect(textWidth(text)).toBe(columns);
  });
});

describe('truncate', () => {
  it('counts columns, not code units', () => {
    expect(truncate('😀😀😀', 6)).toBe('😀😀😀');
    expect(truncate('😀😀😀', 5)).toBe('😀😀…');
    expect(truncate('😀😀😀', 4)).toBe('😀…');
    expect(truncate('abc', 0)).toBe('');
  });
});

describe('shortenMiddle', () => {
  it('keeps both ends', () => {
    expect(shortenMiddle('worker-of-mail-1', 16)).toBe('worker-of-mail-1');
    expect(shortenMiddle('worker-of-mail-1', 9)).toBe('work…il-1');
    expect(shortenMiddle('worker-of-mail-1', 2)).toBe('w…');
    expect(shortenMiddle('会会会会', 6)).toBe('会…会');
  });
});
