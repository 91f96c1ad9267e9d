/** Durations as people write them: `250ms`, `30s`, `20m`, `6h`, `2d`. */

/** A duration as text, e.g. `250ms`, `30s`, `1.5h`. A text that is not known before run time: `text as Duration`. */
export type Duration = `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const PATTERN = /^(\d{1,15}(?:\.\d{1,6})?)(ms|s|m|h|d)$/;

/** A hundred years: a longer duration is taken for a mistake. */
export const MAX_DURATION_MS = 100 * 366 * UNITS.d!;

/** A duration in milliseconds; null when the text is not a duration. */
export function parseDuration(text: string): number | null {
  const match = PATTERN.exec(text);
  if (!match) return null;
  const ms = Math.round(Number(match[1]) * UNITS[match[2]!]!);
  return ms <= MAX_DURATION_MS ? ms : null;
}

/** A number of milliseconds in the largest unit that needs no fraction. */
export function formatDuration(ms: number): Duration {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const size = UNITS[unit]!;
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${Math.round(ms)}ms`;
}

/** A duration for people, rounded to about two significant parts: `850ms`, `4.2s`, `3m 20s`, `5h 4m`, `2d 3h`. */
export function humanDuration(ms: number): string {
  const length = Math.max(0, Math.round(ms));
  if (length < UNITS.s!) return `${length}ms`;
  if (length < 9_950) return `${(length / UNITS.s!).toFixed(1).replace(/\.0$/, '')}s`;
  const seconds = Math.round(length / UNITS.s!);
  if (seconds < 60) return `${seconds}s`;
  if (length < UNITS.h!) return pair(seconds, 60, 'm', 's');
  const minutes = Math.round(length / UNITS.m!);
  if (length < UNITS.d!) return pair(minutes, 60, 'h', 'm');
  return pair(Math.round(length / UNITS.h!), 24, 'd', 'h');
}

function pair(count: number, base: number, large: string, small: string): string {
  const rest = count % base;
  return rest === 0 ? `${count / base}${large}` : `${Math.floor(count / base)}${large} ${rest}${small}`;
}
