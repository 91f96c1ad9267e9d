/** Durations and counts as people read them. */

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const;

/** A duration with its two largest units, such as `3 min 20 s`; below ten seconds with a decimal, below one in milliseconds. */
export function durationText(ms: number): string {
  if (ms < 0) return `−${durationText(-ms)}`;
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1).replace(/\.0$/, '')} s`;
  const seconds = Math.round(ms / 1_000) * 1_000;
  const first = UNITS.findIndex(([, size]) => seconds >= size);
  const [unit, size] = UNITS[first]!;
  const whole = Math.floor(seconds / size);
  const next = UNITS[first + 1];
  const rest = next ? Math.floor((seconds % size) / next[1]) : 0;
  return rest === 0 ? `${whole} ${unit}` : `${whole} ${unit} ${rest} ${next![0]}`;
}

/** A duration with its largest unit only, for where there is little room. */
export function shortDurationText(ms: number): string {
  return durationText(ms).split(' ').slice(0, 2).join(' ');
}

const WHOLE = new Intl.NumberFormat('en-US');
const SHORT = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

/** A count with separators. */
export function countText(count: number): string {
  return WHOLE.format(count);
}

/** A count in at most four signs or so, for where there is little room. */
export function shortCountText(count: number): string {
  return count < 10_000 ? WHOLE.format(count) : SHORT.format(count);
}

/** A number with its noun in the right form. */
export function plural(count: number, one: string, many = `${one}s`): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

const EXACT = new Intl.DateTimeFormat('en-GB', {
  ...{ year: 'numeric', month: 'short', day: '2-digit', weekday: 'short' },
  ...{ hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 },
  timeZoneName: 'short',
});

/** A moment to the millisecond, in the zone of the viewer. */
export function exactText(at: number | string): string {
  return EXACT.format(new Date(at));
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });

/** The time of day in the zone of the viewer. */
export function clockText(at: number | string): string {
  return CLOCK.format(new Date(at));
}

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'narrow' });
const STEPS = [
  ['day', 86_400_000],
  ['hour', 3_600_000],
  ['minute', 60_000],
  ['second', 1_000],
] as const;

/** How long ago or ahead a moment is, such as `3 min. ago`. */
export function relativeText(at: number, now: number): string {
  const away = at - now;
  if (Math.abs(away) < 1_000) return 'now';
  const [unit, size] = STEPS.find(([, each]) => Math.abs(away) >= each)!;
  return RELATIVE.format(Math.trunc(away / size), unit);
}
