import { type Command, InvalidArgumentError } from 'commander';
import { parseDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import { formatRate, MAX_RATE_COUNT, type RateView, readRate } from '../core/rate.js';

/** Parsers for option values. They throw commander's error, which names the option in what it says. */

/** A whole number within bounds. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (!(value >= min && value <= max)) {
      throw new InvalidArgumentError(`Expected a whole number from ${min} to ${max}.`);
    }
    return value;
  };
}

/** A rate, in the form that the API takes. */
export function rate(text: string): RateView {
  const read = readRate(text);
  if (read === null) {
    throw new InvalidArgumentError('Expected a number of starts and a duration, such as 100/1s or 5/1m.');
  }
  return read;
}

export const NONE = 'none';

/** Something, or `none`. Commander takes null for a value that is missing, so the word is kept. */
export function orNone<T>(parse: (text: string) => T): (text: string) => T | typeof NONE {
  return (text) => (text === NONE ? NONE : parse(text));
}

/** A duration, kept as it was written because the API takes it in that form. */
export function durationText(text: string): string {
  if (parseDuration(text) === null) {
    throw new InvalidArgumentError('Expected a duration such as 250ms, 30s, 20m, 6h or 2d.');
  }
  return text;
}

/** A duration in milliseconds. */
export function durationMs(text: string): number {
  return parseDuration(durationText(text))!;
}

const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:\d{2})$/i;

/** A moment with its time zone, in UTC. */
export function moment(text: string): string {
  const time = RFC_3339.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) {
    throw new InvalidArgumentError('Expected a moment with its zone, such as 2026-12-24T18:00:00Z.');
  }
  return new Date(time).toISOString();
}

/** Collects `k=v` from an option that may be given several times. */
export function label(
  text: string,
  previous: Readonly<Record<string, string>> | undefined,
): Readonly<Record<string, string>> {
  const at = text.indexOf('=');
  if (at < 1) throw new InvalidArgumentError('Expected name=value, such as region=eu.');
  const name = text.slice(0, at);
  if (previous && Object.hasOwn(previous, name)) {
    throw new InvalidArgumentError(`The label ${name} is given twice.`);
  }
  return { ...previous, [name]: text.slice(at + 1) };
}

/** A list separated by commas, without empty entries. */
export function commaList(text: string): readonly string[] {
  const entries = text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  if (entries.length === 0)
    throw new InvalidArgumentError('Expected one or more names, separated by commas.');
  return entries;
}

/** Collects the values of an option that may be given several times. */
export function several(text: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), text];
}

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
