import { type Command, InvalidArgumentError } from 'commander';
import { type Duration, parseDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import type { TargetType } from '../core/job.js';
import { maxOfQuota, QUOTA_NAMES, type QuotaName } from '../core/quotas.js';
import { formatRate, MAX_RATE_COUNT, type RateView, readRate } from '../core/rate.js';

/** Parsers of option values. They throw commander's error, to which commander adds the name of the option. */

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

/** A rate in the form of the API. */
export function rate(text: string): RateView {
  const read = readRate(text);
  if (read === null) {
    throw new InvalidArgumentError('Expected a number of starts and a duration, such as 100/1s or 5/1m.');
  }
  return read;
}

/** The word that removes a limit. */
export const NONE = 'none';

/** A value or `none`; not null, which commander takes for a missing value. */
export function orNone<T>(parse: (text: string) => T): (text: string) => T | typeof NONE {
  return (text) => (text === NONE ? NONE : parse(text));
}

/** A duration as text, which is the form of the API. */
export function durationText(text: string): Duration {
  if (parseDuration(text) === null) {
    throw new InvalidArgumentError('Expected a duration such as 250ms, 30s, 20m, 6h or 2d.');
  }
  return text as Duration;
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

/** The entries of a list in a setting, which may be empty. */
export function listOf(text: string): readonly string[] {
  return text.trim() === '' ? [] : commaList(text);
}

/** Kinds of targets that workers run. */
export function targetList(text: string): readonly TargetType[] {
  const names = commaList(text);
  const wrong = names.find((name) => !['handler', 'http', 'exec'].includes(name));
  if (wrong === undefined) return names as readonly TargetType[];
  throw new InvalidArgumentError(`Expected handler, http and exec; there is no target ${wrong}.`);
}

/** Collects the values of an option that may be given several times. */
export function several(text: string, previous: readonly string[] | undefined): readonly string[] {
  return [...(previous ?? []), text];
}

/** The options of these names that are set, as the API takes them. */
export function given<O extends object, N extends keyof O>(options: O, names: readonly N[]): Pick<O, N> {
  return Object.fromEntries(
    names.filter((name) => options[name] !== undefined).map((name) => [name, options[name]]),
  ) as Pick<O, N>;
}

/** A whole number of jobs. */
export const count = wholeNumber(1, MAX_RATE_COUNT);
/** A share in relation to others. */
export const weight = wholeNumber(1, 1_000);

/** The options of a rate, for queues and tenants. */
export interface RateOptions {
  readonly rate?: RateView | typeof NONE;
  readonly burst?: number;
}

/** Adds `--rate` and `--burst`. */
export function addRateOptions(command: Command): void {
  command
    .option(
      '--rate <rate>',
      'the most jobs to start in a time, such as 100/1s; none for no limit',
      orNone(rate),
    )
    .option('--burst <n>', 'jobs of the rate that may start at once (default: the number for 50 ms)', count);
}

/** The rate in the form of the API, if one was given. */
export function rateOf({ rate, burst }: RateOptions): { readonly rate?: RateView | null } {
  const isLimit = rate !== undefined && rate !== NONE;
  if (burst !== undefined && !isLimit) {
    throw new PunctualError('USAGE', '--burst needs --rate.');
  }
  if (!isLimit) return rate === NONE ? { rate: null } : {};
  return { rate: burst === undefined ? rate : { ...rate, burst } };
}

/** Quotas of a tenant as the API takes them. */
export type QuotaOptions = Readonly<Partial<Record<QuotaName, number | null>>>;

/** Collects `name=n` from an option that may be given several times; `none` takes a quota away. */
export function quota(text: string, previous: QuotaOptions | undefined): QuotaOptions {
  const [name = '', value = '', more] = text.split('=');
  const known = QUOTA_NAMES.find((each) => each === name);
  if (known === undefined || more !== undefined) {
    throw new InvalidArgumentError(
      `Expected a quota and its limit, such as liveJobs=10000: ${QUOTA_NAMES.join(', ')}.`,
    );
  }
  if (previous && Object.hasOwn(previous, known))
    throw new InvalidArgumentError(`The quota ${known} is given twice.`);
  const limit = orNone(wholeNumber(known === 'submissionsPerSecond' ? 1 : 0, maxOfQuota(known)))(value);
  return { ...previous, [known]: limit === NONE ? null : limit };
}

/** A rate as people write it. */
export function rateText(rate: RateView | null): string {
  return rate === null ? '-' : formatRate(rate);
}

/** Refuses a change without fields. */
export function requireChange(body: object, options: string): void {
  if (Object.keys(body).length === 0)
    throw new PunctualError('USAGE', `Name at least one change: ${options}.`);
}
