import { expect, it } from 'vitest';
import { ExactNumber, parseExactly } from './exact-json.js';

/** Older versions of Node do not tell what a number was written as, and neither do older browsers. */
const knowsSources = JSON.parse('1', (_name, _value, ...context: unknown[]) => context.length > 0);

it.runIf(knowsSources)('numbers that JavaScript would change stay as they are written', () => {
  const parsed = parseExactly(
    '{"id":12345678901234567890,"plain":[1,1.0,1e3,-0.5],"tiny":0.1000000000000000055}',
  );
  expect(parsed).toEqual({
    id: new ExactNumber('12345678901234567890'),
    plain: [1, 1, 1_000, -0.5],
    tiny: new ExactNumber('0.1000000000000000055'),
  });
});

it('everything else is read as usual', () => {
  expect(parseExactly('{"a":[true,null,"x",7]}')).toEqual({ a: [true, null, 'x', 7] });
});
