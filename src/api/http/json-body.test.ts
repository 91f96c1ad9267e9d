import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseJson } from './json-body.js';

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe('parseJson', () => {
  it('reads what JSON.parse reads, as long as it is not too deep', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.nat(8), (value, maxDepth) => {
        // Fields of that name are refused for a reason of their own.
        fc.pre(!JSON.stringify(value).includes('__proto__'));
        const body = Buffer.from(JSON.stringify(value, null, 1));
        if (depthOf(value) > maxDepth) {
          expect(() => parseJson(body, maxDepth)).toThrow(/nested deeper/);
        } else {
          expect(JSON.stringify(parseJson(body, maxDepth))).toBe(JSON.stringify(value));
        }
      }),
    );
  });

  it('lets the word __proto__ stand as a value', () => {
    const text = '{"word":"__proto__","list":["__proto__"],"say":"\\"__proto__\\": no"}';
    expect(parseJson(Buffer.from(text), 8)).toEqual(JSON.parse(text));
  });

  it('refuses any body with either an error that names a code or a value, never a crash', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => {
        try {
          parseJson(Buffer.from(bytes), 4);
        } catch (error) {
          expect(error).toHaveProperty('code');
        }
      }),
    );
  });
});
