import { expect, it } from 'vitest';
import { ExactNumber, parseExactly, writeExactly } from './exact-json.js';

const LARGE = '{"id":12345678901234567890,"plain":[1,-0.5],"tiny":0.1000000000000000055,"none":1e-400}';

it('numbers that JavaScript would change stay as they are written', () => {
  expect(parseExactly('{"id":12345678901234567890,"plain":[1,1.0,1e3,-0.5],"far":1e400}')).toEqual({
    id: new ExactNumber('12345678901234567890'),
    plain: [1, 1, 1_000, -0.5],
    far: new ExactNumber('1e400'),
  });
});

it('what was read exactly is written with the same digits', () => {
  expect(writeExactly(parseExactly(LARGE))).toBe(LARGE);
  expect(writeExactly(parseExactly('[9007199254740993]'), 2)).toBe('[\n  9007199254740993\n]');
  expect(writeExactly(undefined)).toBeUndefined();
});

it('digits in texts and in names stay where they are', () => {
  const text = '{"12345678901234567890":"9007199254740993","a\\"9007199254740993":[12345678901234567890]}';
  expect(writeExactly(parseExactly(text))).toBe(text);
});

it('everything else is read as usual, and what is no JSON is refused', () => {
  expect(parseExactly('{"a":[true,null,"x",7]}')).toEqual({ a: [true, null, 'x', 7] });
  for (const wrong of ['{12345678901234567890:1}', '[012345678901234567890]', '[1 2]', ''])
    expect(() => parseExactly(wrong)).toThrow(SyntaxError);
});
