import { MAX_ORIGIN_PAUSE_MS } from '../../../core/wire.js';

const DATE =
  /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * The pause that the header `Retry-After` asks for, in seconds or as a date, in milliseconds and at most an hour; undefined if
 * it says nothing that can be read.
 */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  const text = header?.trim() ?? '';
  const asked = /^\d+$/.test(text)
    ? Number(text) * 1_000
    : DATE.test(text)
      ? Date.parse(text) - now
      : Number.NaN;
  return Number.isNaN(asked) ? undefined : Math.min(Math.max(asked, 0), MAX_ORIGIN_PAUSE_MS);
}
