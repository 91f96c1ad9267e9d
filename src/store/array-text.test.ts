import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { textArray } from './array-text.js';

/** Takes an array of quoted texts apart as Postgres does: behind a backslash every character stands for itself. */
function read(array: string): (string | null)[] {
  const values: (string | null)[] = [];
  for (const [, text] of array.slice(1, -1).matchAll(/(?:"((?:[^"\\]|\\.)*)"|null)(?:,|$)/gisu))
    values.push(text === undefined ? null : text.replace(/\\(.)/gsu, '$1'));
  return values;
}

describe('an array for Postgres', () => {
  it('quotes texts and escapes what would end them', () => {
    expect(textArray(['a', '', 'NULL', 'a,b', '{x}'])).toBe('{"a","","NULL","a,b","{x}"}');
    expect(textArray(['say "hi"', 'back\\slash'])).toBe('{"say \\"hi\\"","back\\\\slash"}');
    expect(textArray([])).toBe('{}');
  });

  it('leaves line ends and other control characters as they are', () => {
    expect(textArray(['a\nb', null, '"\t"'])).toBe('{"a\nb",NULL,"\\"\t\\""}');
  });

  it('can be read back, whatever the texts', () => {
    const text = fc.oneof(fc.string({ unit: 'binary' }), fc.string(), fc.json());
    fc.assert(
      fc.property(fc.array(fc.option(text)), (values) => {
        expect(read(textArray(values))).toEqual(values);
      }),
    );
  });
});
