/** Durations as people write them: `250ms`, `30s`, `20m`, `6h`, `2d`. */

const UNITS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const PATTERN = /^(\d{1,15}(?:\.\d{1,6})?)(ms|s|m|h|d)$/;

/** A hundred years: beyond it a duration is a mistake. */
export const MAX_DURATION_MS = 100 * 366 * UNITS.d!;

/** Milliseconds of a duration, or null when it is not one. */
export function parseDuration(text: string): number | null {
  const match = PATTERN.exec(text);
  if (!match) return null;
  const ms = Math.round(Number(match[1]) * UNITS[match[2]!]!);
  return ms <= MAX_DURATION_MS ? ms : null;
}

/** A length of time for people, to two figures or so: `850ms`, `4.2s`, `59.9m`, `3.5h`, `12d`. */
export function roughly(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  const unit = (['d', 'h', 'm', 's'] as const).find((each) => ms >= UNITS[each]!)!;
  return `${Number((ms / UNITS[unit]!).toFixed(1))}${unit}`;
}

/** The shortest exact way to write a number of milliseconds. */
export function formatDuration(ms: number): string {
  for (const unit of ['d', 'h', 'm', 's'] as const) {
    const size = UNITS[unit]!;
    if (ms >= size && ms % size === 0) return `${ms / size}${unit}`;
  }
  return `${Math.round(ms)}ms`;
}
