import { createHmac } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { TextHmac } from './text-hmac.js';

it('is what Node makes of any text with any key', () => {
  const text = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string({ unit: 'binary', maxLength: 4_000, size: 'max' }),
  );
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.array(text, { minLength: 1 }), (key, texts) => {
      const hmac = new TextHmac(key);
      // One after the other, because they are put together in one place.
      for (const each of texts) {
        for (const encoding of ['base64', 'base64url'] as const) {
          const expected = createHmac('sha256', key).update(each).digest(encoding);
          expect(hmac.sign(each, encoding)).toBe(expected);
        }
      }
    }),
  );
});

it('takes texts of any length, and half a character', () => {
  const hmac = new TextHmac(Buffer.from('key'));
  for (const text of ['', '\ud800', 'ä'.repeat(2_730), 'ä'.repeat(2_731), '😀'.repeat(50_000)]) {
    expect(hmac.sign(text, 'base64')).toBe(createHmac('sha256', 'key').update(text).digest('base64'));
  }
});
