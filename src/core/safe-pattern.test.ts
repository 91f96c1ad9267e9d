import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SafePattern } from './safe-pattern.js';

describe('a pattern', () => {
  it.each([
    '',
    '^$',
    '^[a-z]+$',
    '^[A-Z]{2}\\d{4,10}$',
    '^\\+?[0-9]{1,3}-[0-9]+$',
    'ab*c',
    '^[^@\\]]+@[a-z.\\-]+\\.[a-z]{2,}$',
    '^\\p{L}+$',
    'price: 5\\$',
    '^.{1,64}$',
    '🙂+',
  ])('that is a row of characters is taken, and means the same: %j', (source) => {
    const pattern = SafePattern.read(source);
    const real = new RegExp(source, 'u');
    for (const text of ['', 'abc', 'AB12345', '+49-123', 'ada@example.com', 'price: 5$', 'ÄÖ', '🙂🙂', 'ac'])
      expect(pattern!.test(text)).toBe(real.test(text));
  });

  it.each([
    '(a+)+$',
    '(a|a)*$',
    'a|b',
    '(a)\\1',
    '(?=a)b',
    '(?<name>a)',
    '\\bword',
    'a**',
    'a+?',
    'a{2}{3}',
    '[a',
    'a]',
    'a{1',
    'a^b',
    'a$b',
    '\\',
    '\\1',
    '\\u0061',
    '*a',
    '[z-a]',
    'a{3,2}',
    '$^',
    'x'.repeat(2_000),
  ])('that is more than that, or none, is refused: %j', (source) =>
    expect(SafePattern.read(source)).toBe(null),
  );

  it('costs what its repetitions let it cost', () => {
    const cost = (source: string, length: number) => SafePattern.read(source)!.cost(length);
    expect(cost('^[a-z]+$', 1_000)).toBeLessThan(2_000_000);
    expect(cost('^[0-9a-f]{8}-[0-9a-f]{4}$', 100_000)).toBeLessThan(100);
    expect(cost(`^${'a?'.repeat(30)}a{30}$`, 30)).toBeGreaterThan(1e9);
    expect(cost('a*a*a*a*b', 1_000)).toBeGreaterThan(1e12);
  });

  it('never takes longer than its cost says', () => {
    const piece = fc.tuple(
      fc.constantFrom('a', '[ab]', '.', '\\w'),
      fc.constantFrom('', '*', '+', '?', '{2}', '{0,3}'),
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), fc.nat({ max: 200 }), (pieces, length) => {
        const pattern = SafePattern.read(`${pieces.map((each) => each.join('')).join('')}c$`)!;
        if (pattern.cost(length) > 2_000_000) return;
        const began = performance.now();
        expect(pattern.test('a'.repeat(length))).toBe(false);
        // A million comparisons take a few milliseconds; the rest is for a busy machine.
        expect(performance.now() - began).toBeLessThan(1_000);
      }),
    );
  });
});
