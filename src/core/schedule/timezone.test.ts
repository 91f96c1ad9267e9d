import { describe, expect, it } from 'vitest';
import { BLOCK, isTimezone, type OffsetChange, zoneOf } from './timezone.js';

const DAY = 86_400;
const ALL = Intl.supportedValuesOf('timeZone');
const IRREGULAR = [
  'Africa/Casablanca',
  'Asia/Gaza',
  'Pacific/Apia',
  'Europe/Riga',
  'America/Argentina/Tucuman',
];

function secondsOf(date: string): number {
  return Date.parse(date) / 1_000;
}

/** The changes of a zone from one moment to another, in the order of time. */
function changes(name: string, from: string, until: string): OffsetChange[] {
  const zone = zoneOf(name);
  const found: OffsetChange[] = [];
  for (let block = Math.floor(secondsOf(from) / BLOCK); block * BLOCK < secondsOf(until); block++) {
    for (const change of zone.changesAround(block)) {
      const isInside = change.at >= block * BLOCK && change.at < (block + 1) * BLOCK;
      if (isInside && change.at >= secondsOf(from) && change.at < secondsOf(until)) found.push(change);
    }
  }
  return found;
}

describe('names of time zones', () => {
  it('are all those that Node lists, and their aliases', () => {
    expect(ALL.filter((name) => !isTimezone(name))).toEqual([]);
    const aliases = [
      'UTC',
      'utc',
      'GMT',
      'EST',
      'CET',
      'Etc/GMT+2',
      'Asia/Calcutta',
      'US/Pacific',
      'europe/berlin',
      'EST5EDT',
    ];
    expect(aliases.filter((name) => !isTimezone(name))).toEqual([]);
  });

  it.each([
    '',
    ' ',
    'Z',
    '+02:00',
    '-0800',
    'UTC+2',
    'GMT+2',
    'Europe/Atlantis',
    'Europe/Berlin ',
    'Europe',
    'local',
    'x'.repeat(10_000),
    'Europe/Berlin\0',
    '__proto__',
  ])('do not include %j', (name) => {
    expect(isTimezone(name)).toBe(false);
    expect(() => zoneOf(name)).toThrow('is not an IANA time zone');
  });

  it('do not include abbreviations that older systems understood in their own way', () => {
    expect(['BST', 'IST', 'CST', 'PST', 'ACT', 'SystemV/EST5'].filter(isTimezone)).toEqual([]);
  });
});

describe('changes of the clocks', () => {
  it('are found to the second', () => {
    expect(changes('Europe/Berlin', '2026-01-01T00:00Z', '2027-01-01T00:00Z')).toEqual([
      { at: secondsOf('2026-03-29T01:00Z'), before: 3_600, after: 7_200 },
      { at: secondsOf('2026-10-25T01:00Z'), before: 7_200, after: 3_600 },
    ]);
    expect(changes('Europe/Berlin', '1800-01-01T00:00Z', '1900-01-01T00:00Z')).toEqual([
      { at: secondsOf('1893-03-31T23:06:32Z'), before: 3_208, after: 3_600 },
    ]);
  });

  it('are found when they last only for days', () => {
    expect(changes('America/Recife', '2000-10-01T00:00Z', '2000-11-01T00:00Z').map(({ at }) => at)).toEqual([
      secondsOf('2000-10-08T03:00Z'),
      secondsOf('2000-10-15T02:00Z'),
    ]);
  });

  it.each([
    ['every zone', ALL, '2025-01-01T00:00Z', '2028-01-01T00:00Z'],
    ['irregular zones', IRREGULAR, '1900-01-01T00:00Z', '2100-01-01T00:00Z'],
  ] as const)(
    'keep their distance in %s, on which the rules rest',
    { timeout: 60_000 },
    (_, names, from, until) => {
      for (const name of names) {
        const all = changes(name, from, until);
        for (const [index, change] of all.entries()) {
          expect(Math.abs(change.after - change.before)).toBeLessThanOrEqual(DAY);
          const next = all[index + 1];
          if (!next) continue;
          expect(next.before).toBe(change.after);
          expect(next.at - change.at).toBeGreaterThan(3 * DAY);
        }
      }
    },
  );

  it('are none in UTC', () => {
    expect(changes('UTC', '1700-01-01T00:00Z', '2100-01-01T00:00Z')).toEqual([]);
    expect(zoneOf('UTC').offsetAt(0)).toBe(0);
  });

  it('are none before there were zones', () => {
    expect(changes('Europe/Berlin', '0001-01-01T00:00Z', '0100-01-01T00:00Z')).toEqual([]);
    expect(zoneOf('Europe/Berlin').offsetAt(secondsOf('0001-01-01T00:00Z'))).toBe(3_208);
  });
});
