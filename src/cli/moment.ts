/** Times and durations in the words of people. */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** A length of time with two figures that matter: `850ms`, `4.2s`, `3m 20s`, `5h 4m`, `2d 3h`. */
export function humanDuration(ms: number): string {
  const length = Math.max(0, Math.round(ms));
  if (length < SECOND) return `${length}ms`;
  if (length < 9_950) return `${(length / SECOND).toFixed(1).replace(/\.0$/, '')}s`;
  const seconds = Math.round(length / SECOND);
  if (seconds < 60) return `${seconds}s`;
  if (length < HOUR) return pair(seconds, 60, 'm', 's');
  const minutes = Math.round(length / MINUTE);
  if (length < DAY) return pair(minutes, 60, 'h', 'm');
  return pair(Math.round(length / HOUR), 24, 'd', 'h');
}

function pair(count: number, base: number, large: string, small: string): string {
  const rest = count % base;
  return rest === 0 ? `${count / base}${large}` : `${Math.floor(count / base)}${large} ${rest}${small}`;
}

/** A moment as seen from now: `4.2s ago`, `in 3m`. */
export function relativeTime(time: string | null, now: number): string {
  if (time === null) return '-';
  const distance = Date.parse(time) - now;
  if (Number.isNaN(distance)) return time;
  if (Math.abs(distance) < SECOND) return 'now';
  return distance > 0 ? `in ${humanDuration(distance)}` : `${humanDuration(-distance)} ago`;
}

/** The time between two moments, or null when one of them is missing. */
export function elapsed(from: string | null, to: string | null): string | null {
  if (from === null || to === null) return null;
  return humanDuration(Date.parse(to) - Date.parse(from));
}
