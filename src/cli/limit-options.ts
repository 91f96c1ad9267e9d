import type { Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import { formatRate, MAX_RATE_COUNT, type RateView } from '../core/rate.js';
import { NONE, orNone, rate, wholeNumber } from './option-values.js';

/** What the limits of queues and tenants have in common on the command line. */

export const count = wholeNumber(1, MAX_RATE_COUNT);
export const weight = wholeNumber(1, 1_000);

export interface RateOptions {
  readonly rate?: RateView | typeof NONE;
  readonly burst?: number;
}

export function addRateOptions(command: Command): void {
  command
    .option('--rate <rate>', 'jobs that start at most, such as 100/1s; none for no limit', orNone(rate))
    .option('--burst <n>', 'jobs that may start at once under the rate (default: those of 50 ms)', count);
}

/** The rate as the API takes it, if one was given. */
export function rateOf({ rate, burst }: RateOptions): { readonly rate?: RateView | null } {
  const isLimit = rate !== undefined && rate !== NONE;
  if (burst !== undefined && !isLimit) {
    throw new PunctualError('USAGE', '--burst needs a --rate that it belongs to.');
  }
  if (!isLimit) return rate === NONE ? { rate: null } : {};
  return { rate: burst === undefined ? rate : { ...rate, burst } };
}

export function rateText(rate: RateView | null): string {
  return rate === null ? '-' : formatRate(rate);
}

/** Refuses a change that changes nothing. */
export function requireChange(body: object, options: string): void {
  if (Object.keys(body).length === 0) throw new PunctualError('USAGE', `Say what to change: ${options}.`);
}
