/**
 * What the clocks on the wall show, asked of `Intl` moment by moment. A wall-clock time is written as the number of
 * milliseconds that the same date and time would have in UTC, so that wall-clock times can be ordered and compared.
 */

const UNITS = ['year', 'month', 'day', 'hour', 'minute', 'second'] as const;

/** Tells the wall-clock time of a zone at a moment. */
export type WallClock = (moment: number) => number;

const clocks = new Map<string, WallClock>();

/** The wall clock of a zone. */
export function wallClock(timezone: string): WallClock {
  const known = clocks.get(timezone);
  if (known !== undefined) return known;
  const clock = makeClock(timezone);
  clocks.set(timezone, clock);
  return clock;
}

function makeClock(timezone: string): WallClock {
  const format = new Intl.DateTimeFormat('en-US-u-ca-gregory-nu-latn', {
    timeZone: timezone,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  // Reading the digits of the whole text is three times as fast as `formatToParts` at every moment, and the parts of
  // one moment tell in which order the digits stand.
  const order = format
    .formatToParts(0)
    .map((part) => part.type)
    .filter((type) => type !== 'literal');
  const places = UNITS.map((unit) => order.indexOf(unit));
  if (places.includes(-1)) throw new Error(`${timezone}: a unit is missing in ${order.join(' ')}`);
  const [year, month, day, hour, minute, second] = places as [number, number, number, number, number, number];
  return (moment) => {
    const digits = format.format(moment).match(/\d+/g) as string[];
    return Date.UTC(
      Number(digits[year]),
      Number(digits[month]) - 1,
      Number(digits[day]),
      Number(digits[hour]),
      Number(digits[minute]),
      Number(digits[second]),
    );
  };
}
