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

  it('holds no value in the way that any program writes JSON or URLs', () => {
    const secret = 'k/ey+"<ä\\😀\nend';
    const redaction = new Redaction(new Map([[secret, '[secret key]']]));
    const escaped = (text: string) => JSON.stringify(text).slice(1, -1);
    // As PHP, Python, Go, .NET and JavaScript write it.
    const written = [
      'k\\/ey+\\"<\\u00e4\\\\\\ud83d\\ude00\\nend',
      'k/ey+\\"<\\u00e4\\\\\\ud83d\\ude00\\nend',
      'k/ey+\\"\\u003cä\\\\😀\\nend',
      'k/ey\\u002B\\u0022\\u003C\\u00E4\\\\\\uD83D\\uDE00\\nend',
      escaped(secret),
    ];
    for (const form of written) {
      expect(JSON.parse(`"${form}"`)).toBe(secret);
      for (const text of [form, escaped(form)])
        expect(redaction.text(`a ${text} z`)).toBe('a [secret key] z');
    }
    const url = encodeURIComponent(secret);
    for (const text of [url, url.toLowerCase()])
      expect(redaction.text(`/x?y=${text}`)).toBe('/x?y=[secret key]');
    expect(redaction.isNeeded(`{"v":"${url}"}`)).toBe(true);
    expect(redaction.text('a k/ey z%')).toBe('a k/ey z%');
  });

  it('takes time in proportion to the answer, whatever secret and answer are', () => {
    const backslashes = '\\'.repeat(200_000);
    for (const secret of [
      '\\'.repeat(100),
      '\\"'.repeat(100),
      '"'.repeat(100),
      `${'\\'.repeat(50)}x`,
      '%%%%',
      ' \\ \\ ',
    ]) {
      const redaction = new Redaction(new Map([[secret, '[secret]']]));
      const began = performance.now();
      for (const text of [backslashes, '%'.repeat(200_000), `${'\\"'.repeat(50_000)}`]) redaction.text(text);
      expect(performance.now() - began).toBeLessThan(2_000);
    }
  });
});
