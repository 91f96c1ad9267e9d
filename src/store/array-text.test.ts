import { describe, expect, it } from 'vitest';
import { plainArray, textArray } from './array-text.js';

describe('an array for Postgres', () => {
  it('writes numbers, booleans and ids as they are, and nothing as NULL', () => {
    expect(plainArray([1, -2, null, 3.5])).toBe('{1,-2,NULL,3.5}');
    expect(plainArray([true, false])).toBe('{true,false}');
    expect(plainArray([])).toBe('{}');
  });

  it('quotes texts and escapes what would end them', () => {
    expect(textArray(['a', '', null, 'NULL', 'a,b', '{x}'])).toBe('{"a","",NULL,"NULL","a,b","{x}"}');
    expect(textArray(['say "hi"', 'back\\slash'])).toBe('{"say \\"hi\\"","back\\\\slash"}');
  });
});
