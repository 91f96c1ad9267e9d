import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseMoment } from './moment.js';

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
    ['0000-02-29T00:00:00Z', '0000-02-29T00:00:00.000Z'],
  ])('%s is %s', (text, iso) => {
    expect(new Date(parseMoment(text)!).toISOString()).toBe(iso);
  });

  it('moments of one second are told apart, and what only looks like one of them is none', () => {
    const text = (ms: string) => `2026-12-24T18:00:00${ms}Z`;
    for (const ms of [0, 1, 10, 999]) {
      const iso = text(`.${String(ms).padStart(3, '0')}`);
      expect(parseMoment(iso)).toBe(Date.parse(iso));
    }
    for (const ms of ['.1a2', '.+12', '.1 2', ',123', '.-01']) expect(parseMoment(text(ms))).toBeNull();
    expect(parseMoment(text('.123').toLowerCase())).toBe(Date.parse(text('.123')));
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
