import type { RateView } from '../../../src/core/rate.js';

/** Limits as people type and read them, in the words of the command line. */

/** A rate such as `100/1s`; null is no limit. */
export function rateText(rate: RateView | null): string {
  return rate === null ? 'none' : `${rate.limit}/${rate.per}`;
}

/** What the API takes for a rate that was typed. Text that is no rate is sent as it is, because the API says best what is wrong. */
export function rateOf(text: string): unknown {
  const typed = text.trim();
  if (isNone(typed)) return null;
  const [, limit, per] = /^(\d+)\s*\/\s*(\S+)$/.exec(typed) ?? [];
  return limit === undefined ? typed : { limit: Number(limit), per: /^\d/.test(per!) ? per : `1${per}` };
}

/** What the API takes for a number or none. */
export function numberOrNone(text: string): unknown {
  const typed = text.trim();
  if (isNone(typed)) return null;
  return /^\d+$/.test(typed) ? Number(typed) : typed;
}

/** A number or `none`. */
export function noneText(value: number | null): string {
  return value === null ? 'none' : String(value);
}

function isNone(typed: string): boolean {
  return typed === '' || typed.toLowerCase() === 'none';
}
