import { describe, expect, it } from 'vitest';
import { arrayText } from './array-text.js';

const itself = <T>(value: T) => value;

describe('an array for Postgres', () => {
  it('writes numbers, booleans and ids as they are, and nothing as NULL', () => {
    expect(arrayText([1, -2, null, 3.5], itself, false)).toBe('{1,-2,NULL,3.5}');
    expect(arrayText([true, false], itself, false)).toBe('{true,false}');
    expect(arrayText([], itself, false)).toBe('{}');
  });

  it('quotes texts and escapes what would end them', () => {
    const texts = ['a', '', null, 'NULL', 'a,b', '{x}'];
    expect(arrayText(texts, itself, true)).toBe('{"a","",NULL,"NULL","a,b","{x}"}');
    const special = ['say "hi"', 'back\\slash'];
    expect(arrayText(special, itself, true)).toBe('{"say \\"hi\\"","back\\\\slash"}');
  });
});
