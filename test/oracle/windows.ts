/** Stretches of time worth looking at: around changes of the clocks, and where zones have done odd things. */

import { type Change, changes } from './changes.js';
import type { Random } from './random.js';
import { DAY, MINUTE, SECOND, type Walked, walk } from './walk.js';

/** Every time zone that this Node knows. */
export const ZONES: readonly string[] = Intl.supportedValuesOf('timeZone');

export const FIRST_YEAR = 2020;
export const LAST_YEAR = 2040;

/** Zones and moments near which their clocks do something out of the ordinary. */
export const NOTABLE: readonly (readonly [timezone: string, near: string, what: string])[] = [
  ['Europe/Berlin', '2024-03-31', 'an hour is left out at two'],
  ['Europe/Berlin', '2024-10-27', 'an hour comes twice at two'],
  ['America/New_York', '2024-03-10', 'an hour is left out west of Greenwich'],
  ['America/New_York', '2024-11-03', 'an hour comes twice west of Greenwich'],
  ['America/Havana', '2024-11-03', 'the first hour of the day comes twice'],
  ['America/Santiago', '2024-09-08', 'midnight does not exist'],
  ['America/Santiago', '2024-04-07', 'the last hour of a day comes twice'],
  ['Asia/Beirut', '2024-03-31', 'midnight does not exist'],
  ['Africa/Cairo', '2024-11-01', 'the last hour of a month comes twice'],
  ['America/Nuuk', '2024-03-31', 'the last hour of a Saturday does not exist'],
  ['Australia/Lord_Howe', '2024-10-05', 'half an hour is left out'],
  ['Australia/Lord_Howe', '2024-04-06', 'half an hour comes twice'],
  ['Antarctica/Troll', '2024-03-31', 'two hours are left out'],
  ['Antarctica/Troll', '2024-10-27', 'two hours come twice'],
  ['Antarctica/Casey', '2020-10-03', 'three hours are left out'],
  ['Antarctica/Casey', '2021-03-13', 'three hours come twice'],
  ['Africa/Casablanca', '2024-03-10', 'summer time is suspended'],
  ['Europe/Dublin', '2024-10-27', 'winter time is a negative summer time'],
  ['Asia/Almaty', '2024-02-29', 'the offset changes for good on a leap day'],
  ['Asia/Pyongyang', '2015-08-14', 'half an hour comes twice at the end of a day'],
  ['America/Caracas', '2016-05-01', 'half an hour is left out'],
  ['Pacific/Apia', '2011-12-30', 'a whole day is left out'],
  ['Pacific/Kwajalein', '1993-08-21', 'a whole day is left out'],
];

/** Changes with offsets that are not whole minutes. */
export const NOTABLE_BY_SECONDS: readonly (readonly [timezone: string, near: string, what: string])[] = [
  ['Africa/Monrovia', '1972-01-07', '44 minutes and 30 seconds are left out'],
  ['Europe/Paris', '1911-03-10', '9 minutes and 21 seconds come twice'],
  ['Asia/Kolkata', '1906-01-01', '8 minutes and 50 seconds are left out'],
];

/** The change of a zone's clocks within two days of a date. */
export function changeNear(timezone: string, date: string): Change {
  const near = Date.parse(`${date}T00:00:00Z`);
  const [change] = changes(timezone, near - 2 * DAY, near + 2 * DAY);
  if (change === undefined) throw new Error(`${timezone} does not change its clocks near ${date}`);
  return change;
}

/** Two days before a moment to two days after, minute by minute. */
export function aroundMoment(timezone: string, at: number): Walked {
  return walk({ timezone, from: at - 2 * DAY, to: at + 2 * DAY });
}

/** The times that a change leaves out, moves or repeats, and a little on both sides, second by second. */
export function aroundChangeBySeconds(timezone: string, { at, byMs }: Change): Walked {
  const marginMs = Math.abs(byMs) + 15 * MINUTE;
  return walk({ timezone, from: at - marginMs, to: at + marginMs, stepMs: SECOND, marginMs });
}

/** All changes of a zone in a year. */
export function changesIn(timezone: string, year: number): Change[] {
  return changes(timezone, Date.UTC(year, 0, 1), Date.UTC(year + 1, 0, 1));
}

/** A random stretch of a random zone, at a change of the clocks where the zone has one in that year. */
export function randomWindow(random: Random): Walked {
  const timezone = random.pick(ZONES);
  const year = random.between(FIRST_YEAR, LAST_YEAR);
  const found = changesIn(timezone, year);
  const at =
    found.length > 0 ? random.pick(found).at : random.between(Date.UTC(year, 0), Date.UTC(year + 1, 0));
  return aroundMoment(timezone, at);
}
