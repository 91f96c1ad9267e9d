import { humanDuration } from '../core/duration.js';

/** Times and durations in the words of people. */

const SECOND = 1_000;

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
