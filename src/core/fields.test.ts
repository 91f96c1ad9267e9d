import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { FieldError } from './errors.js';
import { FieldReader, parseMoment, pointerStep } from './fields.js';

describe('moments', () => {
  it.each([
    ['2026-12-24T18:00:00Z', '2026-12-24T18:00:00.000Z'],
    ['2026-12-24t18:00:00z', '2026-12-24T18:00:00.000Z'],
    ['2026-12-24T18:00:00+01:00', '2026-12-24T17:00:00.000Z'],
    ['2026-12-31T23:30:00-01:45', '2027-01-01T01:15:00.000Z'],
    ['2026-01-01T00:00:00+23:59', '2025-12-31T00:01:00.000Z'],
    ['2026-01-01T00:00:00-00:00', '2026-01-01T00:00:00.000Z'],
    ['2026-01-01T00:00:00.1Z', '2026-01-01T00:00:00.100Z'],
    ['2026-01-01T00:00:00.12Z', '2026-01-01T00:00:00.120Z'],
    ['2026-01-01T00:00:00.123456789Z', '2026-01-01T00:00:00.123Z'],
    ['2026-01-01T00:00:00.9999+02:00', '2025-12-31T22:00:00.999Z'],
    ['2024-02-29T12:00:00Z', '2024-02-29T12:00:00.000Z'],
    ['2000-02-29T12:00:00Z', '2000-02-29T12:00:00.000Z'],
    ['2026-04-30T00:00:00Z', '2026-04-30T00:00:00.000Z'],
    ['2026-01-31T00:00:00-12:00', '2026-01-31T12:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
    ['0050-03-01T00:00:00Z', '0050-03-01T00:00:00.000Z'],
  ])('%s is %s', (text, iso) => {
    expect(new Date(parseMoment(text)!).toISOString()).toBe(iso);
  });

  it.each([
    '',
    'now',
    '2026-12-24',
    '2026-12-24T18:00Z',
    '2026-12-24T18:00:00',
    '2026-12-24 18:00:00Z',
    '2026-12-24T18:00:00+0100',
    '2026-12-24T18:00:00+01',
    '2026-12-24T18:00:00 Z',
    '2026-12-24T18:00:00.Z',
    '2026-12-24T18:00:00.1234567890Z',
    '2026-12-24T18:00:00ZZ',
    '2026-12-24T18:00:00Z\n',
    '+002026-12-24T18:00:00Z',
    '2026-02-29T00:00:00Z',
    '2100-02-29T00:00:00Z',
    '2026-02-30T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-00-10T00:00:00Z',
    '2026-13-10T00:00:00Z',
    '2026-01-00T00:00:00Z',
    '2026-01-32T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T25:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:61Z',
    '2026-01-01T00:00:00+24:00',
    '2026-01-01T00:00:00+01:60',
    '9999-12-31T23:59:59-00:01',
    '２０２６-01-01T00:00:00Z',
    '1767225600000',
  ])('%j is none', (text) => {
    expect(parseMoment(text)).toBeNull();
  });

  it('come back as they were written, in any offset', () => {
    const moment = fc.date({
      min: new Date('0001-01-02T00:00:00Z'),
      max: new Date('9999-12-30T00:00:00Z'),
      noInvalidDate: true,
    });
    fc.assert(
      fc.property(moment, fc.integer({ min: -1_439, max: 1_439 }), (date, offset) => {
        const local = new Date(date.getTime() + offset * 60_000).toISOString().slice(0, -1);
        const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
        const pad = (value: number) => String(value).padStart(2, '0');
        const text = `${local}${offset < 0 ? '-' : '+'}${pad(hours)}:${pad(minutes)}`;
        expect(parseMoment(text)).toBe(date.getTime());
      }),
    );
  });
});

function read(input: unknown, known = ['field', 'other'], pointer = ''): FieldReader {
  return new FieldReader(input, pointer, known);
}

/** What a reader method makes of one value, and what it complains about. */
function outcome<T>(
  value: unknown,
  method: (fields: FieldReader) => T,
): { value: T; errors: readonly FieldError[] } {
  const fields = read({ field: value });
  return { value: method(fields), errors: fields.errors };
}

describe('a reader of fields', () => {
  it.each([[null], [undefined], ['text'], [5], [true], [[]], [() => undefined]])(
    'refuses %s as an object',
    (input) => {
      expect(read(input, [], '/jobs/3').errors).toEqual([
        { pointer: '/jobs/3', detail: 'must be an object' },
      ]);
    },
  );

  it('names every unknown field, with its pointer escaped', () => {
    const fields = read(JSON.parse('{"a/b":1,"c~d":2,"__proto__":3,"constructor":4,"field":5}'));
    expect(fields.errors.map((error) => error.pointer)).toEqual([
      '/a~1b',
      '/c~0d',
      '/__proto__',
      '/constructor',
    ]);
    expect(pointerStep(7)).toBe('/7');
  });

  it('takes absent fields for absent, whatever objects inherit', () => {
    const fields = read({});
    expect(fields.has('field')).toBe(false);
    expect([
      fields.name('field'),
      fields.text('field', 5),
      fields.integer('field', 0, 1),
      fields.number('field', 0, 1),
      fields.boolean('field'),
      fields.oneOf('field', ['a']),
      fields.duration('field'),
      fields.moment('field'),
      fields.texts('field', 1, 1),
      fields.nested('field', []),
    ]).toEqual(new Array(10).fill(undefined));
    expect(fields.errors).toEqual([]);
  });

  it('takes null for a wrong value, not for an absent one', () => {
    const fields = read({ field: null });
    fields.name('field');
    fields.integer('field', 0, 1);
    fields.duration('field');
    fields.texts('field', 1, 1);
    fields.nested('field', []);
    expect(fields.errors).toHaveLength(5);
  });

  it.each([
    ['a', true],
    ['A-z_0.9:', true],
    ['x'.repeat(128), true],
    ['', false],
    ['x'.repeat(129), false],
    ['a b', false],
    ['a/b', false],
    ['ä', false],
    ['a\n', false],
    ['a\0', false],
    [5, false],
    [['a'], false],
  ])('reads the name %j: %s', (value, good) => {
    const { value: name, errors } = outcome(value, (fields) => fields.name('field'));
    expect(name).toBe(good ? value : undefined);
    expect(errors.map((error) => error.pointer)).toEqual(good ? [] : ['/field']);
  });

  it.each([
    ['any: ünïcode 🎉', true],
    ['12345678901234567890', true],
    ['', false],
    ['123456789012345678901', false],
    ['nul\0', false],
    ['tab\t', false],
    ['del\u007f', false],
    ['lone \ud800', false],
    ['\udc00 lone', false],
    [5, false],
    [{}, false],
  ])('reads the text %j: %s', (value, good) => {
    const { value: text, errors } = outcome(value, (fields) => fields.text('field', 20));
    expect(text).toBe(good ? value : undefined);
    expect(errors).toHaveLength(good ? 0 : 1);
  });

  it.each([
    [1, true],
    [9, true],
    [5.0, true],
    [0, false],
    [10, false],
    [1.5, false],
    ['5', false],
    [Number.NaN, false],
    [Number.POSITIVE_INFINITY, false],
    [true, false],
    [5n, false],
  ])('reads the whole number %s: %s', (value, good) => {
    const { value: number, errors } = outcome(value, (fields) => fields.integer('field', 1, 9));
    expect(number).toBe(good ? value : undefined);
    expect(errors).toHaveLength(good ? 0 : 1);
  });

  it.each([
    [0, true],
    [0.5, true],
    [1, true],
    [-0.1, false],
    [1.1, false],
    ['0.5', false],
    [Number.NaN, false],
  ])('reads the number %s: %s', (value, good) => {
    const { value: number, errors } = outcome(value, (fields) => fields.number('field', 0, 1));
    expect(number).toBe(good ? value : undefined);
    expect(errors).toHaveLength(good ? 0 : 1);
  });

  it('reads booleans, choices, durations and moments, and says what it expected', () => {
    expect(outcome(false, (fields) => fields.boolean('field')).value).toBe(false);
    expect(outcome('true', (fields) => fields.boolean('field')).errors[0]?.detail).toContain('true or false');
    expect(outcome('b', (fields) => fields.oneOf('field', ['a', 'b'])).value).toBe('b');
    expect(outcome('c', (fields) => fields.oneOf('field', ['a', 'b'])).errors[0]?.detail).toContain(
      '"a" or "b"',
    );
    expect(outcome('2m', (fields) => fields.duration('field')).value).toBe(120_000);
    expect(outcome('0s', (fields) => fields.duration('field')).value).toBe(0);
    expect(outcome(120_000, (fields) => fields.duration('field')).errors[0]?.detail).toContain('"30s"');
    expect(outcome('1970-01-01T00:00:00Z', (fields) => fields.moment('field'))).toEqual({
      value: 0,
      errors: [],
    });
    expect(outcome('tomorrow', (fields) => fields.moment('field')).errors[0]?.detail).toContain('RFC 3339');
  });

  it('points at the entry of a map that is wrong', () => {
    const map = { good: 'x', 'a/b': 5, long: 'x'.repeat(11), control: 'a\nb', '': 'x', half: '\ud83d' };
    const { errors } = outcome(map, (fields) => fields.texts('field', 10, 10));
    expect(errors.map((error) => error.pointer)).toEqual([
      '/field/a~1b',
      '/field/long',
      '/field/control',
      '/field/',
      '/field/half',
    ]);
    expect(outcome({ a: '', b: 'x' }, (fields) => fields.texts('field', 2, 10)).errors).toEqual([]);
    expect(outcome({ a: '', b: 'x' }, (fields) => fields.texts('field', 1, 10)).errors).toHaveLength(1);
    expect(outcome([], (fields) => fields.texts('field', 1, 10)).errors).toHaveLength(1);
    expect(outcome({ ['k'.repeat(129)]: '' }, (fields) => fields.texts('field', 1, 10)).errors).toHaveLength(
      1,
    );
  });

  it('gathers the errors of nested objects in one list, with pointers from the root', () => {
    const fields = read({ field: { inner: 5, odd: 1 } }, ['field'], '/jobs/0');
    fields.nested('field', ['inner'])!.text('inner', 10);
    expect(fields.errors.map((error) => error.pointer)).toEqual(['/jobs/0/field/odd', '/jobs/0/field/inner']);
  });
});
