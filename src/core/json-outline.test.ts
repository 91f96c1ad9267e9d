import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { JsonOutline } from './json-outline.js';

/** The value at a position, built the long way from what the outline says of its parts. */
function built(outline: JsonOutline, start: number): unknown {
  if (outline.isArray(start)) return outline.itemsOf(start).map((item) => built(outline, item));
  if (!outline.isObject(start)) return JSON.parse(outline.text.slice(start, outline.endOf(start)));
  const members = [...outline.membersOf(start)].map(([key, value]) => [key, built(outline, value)] as const);
  return Object.fromEntries(members);
}

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** JSON with blanks, escapes and keys that are given twice. */
const texts = fc
  .tuple(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(undefined, 1, '\t'), fc.boolean())
  .map(([value, space, doubles]) => {
    const text = JSON.stringify({ value, a: [value], 'ä"\\': { '': value } }, null, space);
    return doubles ? `{"a":{"b":1},"a":${text},"\\u0061":[ ${text} ]}` : ` ${text}\n`;
  });

describe('the outline of a JSON text', () => {
  it('finds the same values as JSON.parse', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const outline = new JsonOutline(text);
        expect(built(outline, outline.root)).toEqual(JSON.parse(text));
      }),
    );
  });

  it('says how deep a value is nested', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const outline = new JsonOutline(JSON.stringify(value));
        expect(outline.depthOf(outline.root)).toBe(depthOf(value));
      }),
    );
  });

  it.each([
    ['{"a":[10,20]}', ['a', '1'], '20'],
    ['{"a":{"1":"x"}}', ['a', '1'], '"x"'],
    ['{"__proto__":{"constructor":1}}', ['__proto__', 'constructor'], '1'],
    ['{"n": 12345678901234567890.10 }', ['n'], '12345678901234567890.10'],
    ['{"a":1,"a":[ 2 , 3 ]}', ['a'], '[ 2 , 3 ]'],
  ])('follows a path: %s', (text, path, expected) => {
    const outline = new JsonOutline(text);
    const found = path.reduce<number | null>(
      (at, key) => (at !== null ? outline.childOf(at, key) : null),
      outline.root,
    );
    expect(text.slice(found!, outline.endOf(found!))).toBe(expected);
  });

  it.each([
    ['{}', 'constructor'],
    ['{}', '__proto__'],
    ['[1]', 'length'],
    ['[1]', '00'],
    ['[1]', '-1'],
    ['[1]', '1'],
    ['"text"', '0'],
    ['7', 'x'],
  ])('finds nothing where nothing is: %s at %s', (text, key) => {
    const outline = new JsonOutline(text);
    expect(outline.childOf(outline.root, key)).toBe(null);
  });

  it('takes a text of a hundred thousand levels', () => {
    const outline = new JsonOutline('['.repeat(100_000) + ']'.repeat(100_000));
    expect(outline.depthOf(outline.root)).toBe(100_000);
  });
});
