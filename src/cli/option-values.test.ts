import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  commaList,
  durationMs,
  durationText,
  label,
  moment,
  orNone,
  rate,
  several,
  wholeNumber,
} from './option-values.js';

describe('option values', () => {
  it('takes whole numbers within the bounds and nothing else', () => {
    const parse = wholeNumber(1, 9);
    expect(parse('9')).toBe(9);
    for (const wrong of ['0', '10', '-1', '1.5', '1e0', ' 1', '', 'x', '0x1']) {
      expect(() => parse(wrong)).toThrow('from 1 to 9');
    }
  });

  it('takes rates with their time, and none where that is allowed', () => {
    expect(rate('100/1s')).toEqual({ limit: 100, per: '1s' });
    expect(() => rate('none')).toThrow('such as 100/1s');
    expect(orNone(rate)('none')).toBe('none');
    expect(() => orNone(rate)('100')).toThrow('such as 100/1s');
  });

  it('keeps durations as written', () => {
    expect(durationText('250ms')).toBe('250ms');
    expect(durationMs('2m')).toBe(120_000);
    expect(() => durationText('2 minutes')).toThrow('Expected a duration');
  });

  it('wants a time zone with a moment', () => {
    expect(moment('2026-12-24T19:00:00+01:00')).toBe('2026-12-24T18:00:00.000Z');
    expect(moment('2026-12-24T18:00Z')).toBe('2026-12-24T18:00:00.000Z');
    for (const wrong of ['2026-12-24T18:00:00', 'tomorrow', '2026-13-24T18:00:00Z', '1766599200']) {
      expect(() => moment(wrong)).toThrow('with its zone');
    }
  });

  it('collects labels and refuses the same one twice', () => {
    expect(label('b=2=3', label('a=1', undefined))).toEqual({ a: '1', b: '2=3' });
    expect(() => label('a=2', { a: '1' })).toThrow('twice');
    expect(() => label('novalue', undefined)).toThrow('name=value');
    expect(() => label('=x', undefined)).toThrow('name=value');
  });

  it('gives back every label it is given, whatever the value', () => {
    fc.assert(
      fc.property(
        fc.string({ minLength: 1 }).filter((name) => !name.includes('=')),
        fc.string(),
        (name, value) => {
          expect(Object.entries(label(`${name}=${value}`, undefined))).toEqual([[name, value]]);
        },
      ),
    );
  });

  it('splits lists and repeats options', () => {
    expect(commaList('a, b,,c')).toEqual(['a', 'b', 'c']);
    expect(() => commaList(' , ')).toThrow('one or more');
    expect(several('b', several('a', undefined))).toEqual(['a', 'b']);
  });
});
