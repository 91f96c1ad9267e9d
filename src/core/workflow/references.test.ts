import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonText } from '../json-reader.js';
import {
  findReferences,
  MOST_REFERENCES,
  nameOf,
  outlineResult,
  pointerTo,
  resolveReferences,
} from './references.js';

const LIMITS = { maxBytes: 100_000, maxDepth: 64 };

function json(text: string): JsonText {
  return new JsonText(text, Buffer.byteLength(text));
}

function resolve(payload: string, results: Readonly<Record<string, string>>, limits = LIMITS) {
  const resultOf = (step: string) =>
    Object.hasOwn(results, step) ? outlineResult(json(results[step]!)) : null;
  return resolveReferences(json(payload), resultOf, limits);
}

/** The same on built values: simple, but it loses digits. */
function resolvedValue(value: unknown, results: Readonly<Record<string, unknown>>): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((each) => resolvedValue(each, results));
  const keys = Object.keys(value);
  if (keys.length === 1 && keys[0] === '$from') {
    const [step, , ...path] = (value as { $from: string }).$from.split('.');
    return path.reduce((at, key) => (at as Record<string, unknown>)[key], results[step!]);
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [key, resolvedValue(child, results)]),
  );
}

/** The paths to all values in a value, as references spell them. */
function pathsIn(value: unknown, path: readonly string[] = []): string[][] {
  const here = [[...path]];
  if (typeof value !== 'object' || value === null) return here;
  const parts = Object.entries(value).filter(([key]) => key.length > 0 && !key.includes('.'));
  return [...here, ...parts.flatMap(([key, child]) => pathsIn(child, [...path, key]))];
}

const results = fc.record({
  a: fc.jsonValue({ maxDepth: 4 }),
  b: fc.constant({ $from: 'a.result', '__proto__ ': [1, { constructor: 'é' }] }),
});

/** A payload with references to values that exist, and the results that they are to. */
const cases = results.chain((given) => {
  const names = Object.entries(given).flatMap(([step, value]) =>
    pathsIn(value).map((path) => [step, 'result', ...path].join('.')),
  );
  const reference = fc.constantFrom(...names).map((from) => ({ $from: from }));
  const { payload } = fc.letrec((tie) => ({
    payload: fc.oneof(
      { maxDepth: 4 },
      reference,
      fc.jsonValue({ maxDepth: 1 }),
      fc.array(tie('payload'), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom('$from', 'x', 'é', 'from'), tie('payload'), { maxKeys: 3 }),
    ),
  }));
  return fc.record({ payload, given: fc.constant(given), space: fc.constantFrom(undefined, 2) });
});

describe('references to results', () => {
  it('become the values that they are to, wherever they stand', () => {
    fc.assert(
      fc.property(cases, ({ payload, given, space }) => {
        const text = JSON.stringify(payload, null, space);
        fc.pre(findReferences(json(text)).errors.length === 0);
        const texts = Object.fromEntries(
          Object.entries(given).map(([step, value]) => [step, JSON.stringify(value)]),
        );
        const { payload: resolved } = resolve(text, texts);
        // As JSON, which knows no negative zero.
        const expected = JSON.stringify(resolvedValue(JSON.parse(text), given));
        expect(JSON.parse(resolved!.text)).toEqual(JSON.parse(expected));
        expect(resolved!.bytes).toBe(Buffer.byteLength(resolved!.text));
      }),
      { numRuns: 500 },
    );
  });

  it('are found with where they stand, in the order of the text', () => {
    const payload = json('{"a":[1,{"$from":"x.result.y.0"}],"b/c":{"\\u0024from":"z.result"}}');
    const { references, errors } = findReferences(payload);
    expect(errors).toEqual([]);
    expect(
      references.map((each) => [
        nameOf(each),
        pointerTo(each.place),
        payload.text.slice(each.start, each.end),
      ]),
    ).toEqual([
      ['x.result.y.0', '/a/1', '{"$from":"x.result.y.0"}'],
      ['z.result', '/b~1c', '{"\\u0024from":"z.result"}'],
    ]);
  });

  it.each([
    ['an object with another member', '{"$from":"a.result","x":1}'],
    ['a text that looks like one', '["$from","{\\"$from\\":\\"a.result\\"}"]'],
    ['a member that a later one of the same name replaces', '{"x":{"$from":"a.result"},"x":1}'],
    ['no JSON object at all', '"$from"'],
  ])('are not: %s', (_, text) => {
    expect(findReferences(json(text))).toEqual({ references: [], errors: [] });
    expect(resolve(text, {}).payload!.text).toBe(text);
  });

  it.each([
    '"a"',
    '"a.x"',
    '"a.error"',
    '"a.result."',
    '"a.result..x"',
    '".result"',
    '"a b.result"',
    '7',
    '{"x":1}',
    '["a.result"]',
    'null',
  ])('are refused with a pointer if they say %s', (said) => {
    const { errors } = findReferences(json(`{"x":[{"$from":${said}}]}`));
    expect(errors).toMatchObject([{ pointer: '/x/0/$from', detail: expect.stringContaining('.result') }]);
  });

  it('keep every digit and every letter of the value', () => {
    const result = '{"n":12345678901234567890.1000, "s":"\\u00e9 \\ud800", "list":[ 1e999 ]}';
    const payload =
      '{"n": {"$from":"a.result.n"},"s":{ "$from" : "a.result.s" },"all":{"$from":"a.result"}, "m":1.0}';
    expect(resolve(payload, { a: result }).payload!.text).toBe(
      `{"n": 12345678901234567890.1000,"s":"\\u00e9 \\ud800","all":${result}, "m":1.0}`,
    );
  });

  it('take the last of members with the same name, like JSON.parse', () => {
    const payload = '{"$from":"a.result","$from":"a.result.x"}';
    expect(resolve(payload, { a: '{"x":{"y":1},"x":2}' }).payload!.text).toBe('2');
    expect(resolve('{"$from":"a.result.x.y"}', { a: '{"x":{"y":1},"x":2}' }).error).toMatchObject({
      code: 'MISSING_PATH',
    });
  });

  it('treat names of prototypes like every other name', () => {
    const result = '{"__proto__":{"x":1},"constructor":2}';
    expect(
      resolve('[{"$from":"a.result.__proto__.x"},{"$from":"a.result.constructor"}]', { a: result }).payload!
        .text,
    ).toBe('[1,2]');
    for (const name of ['__proto__', 'constructor', 'toString', 'length']) {
      expect(resolve(`{"$from":"a.result.${name}"}`, { a: '[]' }).error?.code).toBe('MISSING_PATH');
    }
    expect(resolve('{"$from":"constructor.result"}', {}).error?.code).toBe('MISSING_RESULT');
  });

  it.each([
    ['{"x":{"y":1}}', 'a.result.x.z', '"result.x" is an object without "z"'],
    ['{"x":[1]}', 'a.result.x.1', '"result.x" is a list without "1"'],
    ['{"x":"text"}', 'a.result.x.0', '"result.x" is a text without "0"'],
    ['null', 'a.result.x', '"result" is null without "x"'],
    ['3', 'a.result.x', '"result" is a number without "x"'],
  ])('name step and path when the path is missing: %s at %s', (result, from, why) => {
    const { error } = resolve(JSON.stringify({ deep: [{ $from: from }] }), { a: result });
    expect(error).toEqual({ code: 'MISSING_PATH', message: `The payload needs "${from}": ${why}.` });
  });

  it('say which step has no result', () => {
    const { error } = resolve('{"$from":"b.result.x"}', {});
    expect(error).toMatchObject({ code: 'MISSING_RESULT', message: expect.stringContaining('"b.result.x"') });
  });

  it('are never looked for in what was put in', () => {
    const result = '{"$from":"a.result"}';
    expect(resolve('[{"$from":"a.result"}]', { a: result }).payload!.text).toBe(`[${result}]`);
  });

  it('keep to the limit of bytes exactly', () => {
    const payload = '{"x":{"$from":"a.result"},"y":{"$from":"a.result"}}';
    const size = Buffer.byteLength('{"x":"ü","y":"ü"}');
    expect(resolve(payload, { a: '"ü"' }, { ...LIMITS, maxBytes: size }).payload!.bytes).toBe(size);
    expect(resolve(payload, { a: '"ü"' }, { ...LIMITS, maxBytes: size - 1 }).error).toEqual({
      code: 'PAYLOAD_TOO_LARGE',
      message: `With "a.result" put in, the payload is larger than ${size - 1} bytes.`,
    });
  });

  it('keep to the limit of depth exactly', () => {
    const payload = '[[{"$from":"a.result.x"}]]';
    expect(resolve(payload, { a: '{"x":[[1]]}' }, { ...LIMITS, maxDepth: 4 }).payload!.text).toBe(
      '[[[[1]]]]',
    );
    expect(resolve(payload, { a: '{"x":[[1]]}' }, { ...LIMITS, maxDepth: 3 }).error?.code).toBe(
      'PAYLOAD_TOO_DEEP',
    );
  });

  it('cost no more than one look at a large result, however many they are', () => {
    const large = JSON.stringify({
      list: Array.from({ length: 20_000 }, (_, i) => ({ n: i, text: 'x'.repeat(40) })),
    });
    const from = Array.from({ length: MOST_REFERENCES }, (_, i) => ({ $from: `a.result.list.${i}.n` }));
    const outline = outlineResult(json(large));
    const payload = json(JSON.stringify(from));
    const started = performance.now();
    const { payload: resolved } = resolveReferences(payload, () => outline, {
      maxBytes: 1_000_000,
      maxDepth: 64,
    });
    expect(JSON.parse(resolved!.text)).toEqual(from.map((_, i) => i));
    // One look takes some ten milliseconds; a look for each reference would take a minute.
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  it('are refused before anything is built when thousands of copies of a large result are asked for', () => {
    const from = Array.from({ length: MOST_REFERENCES }, () => ({ $from: 'a.result' }));
    const outline = outlineResult(json(JSON.stringify('x'.repeat(1_000_000))));
    const { error } = resolveReferences(json(JSON.stringify(from)), () => outline, {
      maxBytes: 2_500_000,
      maxDepth: 8,
    });
    expect(error?.code).toBe('PAYLOAD_TOO_LARGE');
  });

  it('are bounded in number', () => {
    const from = Array.from({ length: MOST_REFERENCES + 1 }, () => ({ $from: 'a.result' }));
    expect(findReferences(json(JSON.stringify(from))).errors).toMatchObject([{ pointer: '' }]);
  });

  it('list only as many mistakes as are told', () => {
    const from = Array.from({ length: 5_000 }, () => ({ $from: 'wrong' }));
    expect(findReferences(json(JSON.stringify(from))).errors.length).toBeLessThan(30);
  });
});
