import { expect, it } from 'vitest';
import { readTraceparent } from './trace-context.js';

const TRACE = '0af7651916cd43dd8448eb211c80319c';
const SPAN = 'b7ad6b7169203331';

it('a traceparent is taken as it is', () => {
  expect(readTraceparent(`00-${TRACE}-${SPAN}-01`)).toBe(`00-${TRACE}-${SPAN}-01`);
});

it('one of a later version is taken for what is known of it', () => {
  expect(readTraceparent(`cc-${TRACE}-${SPAN}-01-what-comes`)).toBe(`00-${TRACE}-${SPAN}-01`);
});

it.each([
  undefined,
  ['00'],
  '',
  '00-zz-zz-zz',
  `00-${TRACE}-${SPAN}`,
  `00-${TRACE}-${SPAN}-01-more`,
  `ff-${TRACE}-${SPAN}-01`,
  `00-${'0'.repeat(32)}-${SPAN}-01`,
  `00-${TRACE}-${'0'.repeat(16)}-01`,
  `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  `00-${TRACE}-${SPAN}-01\n`,
  ` 00-${TRACE}-${SPAN}-01`,
])('%j is none', (value) => {
  expect(readTraceparent(value)).toBeNull();
});
