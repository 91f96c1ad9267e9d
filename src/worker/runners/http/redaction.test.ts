import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Redaction } from './redaction.js';

describe('what is kept of an answer', () => {
  it('holds no value of a secret, wherever the answer repeats it', () => {
    const value = fc
      .string({ minLength: 4, maxLength: 20 })
      .filter((text) => !'[secret name]'.includes(text));
    fc.assert(
      fc.property(value, fc.string(), fc.string(), (secret, before, after) => {
        const redaction = new Redaction(new Map([[secret, '[secret name]']]));
        const text = before + secret + after;
        expect(redaction.text(before + secret)).toContain('[secret name]');
        const kept = JSON.stringify(redaction.json({ a: [text], [text]: 1 }));
        if (!`${before}[secret name]${after}`.includes(secret))
          expect(kept.includes(JSON.stringify(secret).slice(1, -1)) && !text.includes('[secret')).toBe(false);
      }),
    );
  });

  it('names the secret, the longer one where one is part of another, also as JSON writes it', () => {
    const marks = new Map([
      ['abcd', '[secret short]'],
      ['abcd"efgh', '[secret long]'],
    ]);
    const redaction = new Redaction(marks);
    expect(redaction.text('x abcd"efgh y abcd')).toBe('x [secret long] y [secret short]');
    expect(redaction.text('{"v":"abcd\\"efgh"}')).toBe('{"v":"[secret long]"}');
  });
});
