import fc from 'fast-check';
import { expect, it } from 'vitest';
import { conditionsOf, conditionsOfQuery, PAYLOAD_PATH, scalarText } from './payload-filter.js';

it.each([
  ['7', 'number', '7'],
  ['"7"', 'string', '7'],
  ['-0.5e3', 'number', '-0.5e3'],
  ['12345678901234567890', 'number', '12345678901234567890'],
  ['007', 'string', '007'],
  ['+7', 'string', '+7'],
  ['true', 'boolean', 'true'],
  ['"true"', 'string', 'true'],
  ['True', 'string', 'True'],
  ['null', 'null', 'null'],
  ['', 'string', ''],
  ['Ada Lovelace', 'string', 'Ada Lovelace'],
  ['"a\\"b"', 'string', 'a"b'],
  ['"open', 'string', '"open'],
  ['"a\\u0000b"', 'string', 'a\ufffdb'],
  ['{"a":1}', 'string', '{"a":1}'],
])('%s in a query is the %s %s', (text, kind, value) => {
  expect(conditionsOfQuery({ 'a.0.b': text })).toEqual([{ path: ['a', '0', 'b'], kind, value }]);
});

it('a value means the same in a query as in a body', () => {
  const scalar = fc.oneof(
    fc.string(),
    fc.constantFrom('7', '"7"', 'true', 'null', '"', '1e5'),
    fc.double({ noNaN: true, noDefaultInfinity: true }).filter((value) => !Object.is(value, -0)),
    fc.boolean(),
    fc.constant(null),
  );
  fc.assert(
    fc.property(scalar, (value) => {
      expect(conditionsOfQuery({ a: scalarText(value) })).toEqual(conditionsOf({ a: value }));
    }),
  );
});

it.each(['a', 'a.b', 'items.0.sku', 'with space', 'ünïcode', "it's"])('%s is a path', (path) => {
  expect(path).toMatch(new RegExp(PAYLOAD_PATH, 'u'));
});

it.each(['', '.', 'a.', '.a', 'a..b', 'a\u0000', Array.from({ length: 17 }, () => 'a').join('.')])(
  '%j is none',
  (path) => {
    expect(path).not.toMatch(new RegExp(PAYLOAD_PATH, 'u'));
  },
);
