import fc from 'fast-check';
import { expect, it } from 'vitest';
import { endOfPrefix } from './key-prefix.js';

const bytes = (text: string) => Buffer.from(text);

it('all texts that begin with the prefix, and no others, lie between it and its end', () => {
  const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(text, text, (prefix, other) => {
      const end = endOfPrefix(prefix);
      for (const key of [prefix, prefix + other, other]) {
        const isAbove = Buffer.compare(bytes(key), bytes(prefix)) >= 0;
        const isBelow = end === null || Buffer.compare(bytes(key), bytes(end)) < 0;
        expect(isAbove && isBelow).toBe(key.startsWith(prefix));
      }
    }),
  );
});

it.each([
  ['a', 'b'],
  ['order-', 'order.'],
  ['\ud7ff', '\ue000'],
  ['a\u{10ffff}', 'b'],
  ['\u{10ffff}', null],
])('the end of %j is %j', (prefix, end) => {
  expect(endOfPrefix(prefix)).toBe(end);
});
