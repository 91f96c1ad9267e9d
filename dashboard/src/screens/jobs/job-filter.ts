import type { JobState } from '../../../../src/core/job.js';
import type { JobFilter as BodyFilter } from '../../../../src/core/wire.js';
import { quoted } from '../../parts/quoted.js';

/**
 * Filters of jobs, as they stand in the address of the page, in the query bar, in a request, and on a command line. All of
 * them are made of the same names and texts; those of the payload are `payload.` and a path.
 */

/** Texts by the names of filters, such as `{ state: 'failed', 'payload.customer': '7' }`. */
export type JobFilter = Readonly<Record<string, string>>;

/** A filter that there is. */
interface FilterName {
  readonly name: string;
  readonly words: string;
  /** What the value looks like, for those that have no list of known values. */
  readonly example?: string;
}

export const JOB_STATES: readonly JobState[] = [
  'blocked',
  'pending',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'skipped',
];

const PAYLOAD = 'payload.';

export const FILTER_NAMES: readonly FilterName[] = [
  { name: 'state', words: 'one state, or several with commas' },
  { name: 'task', words: 'the task that runs' },
  { name: 'queue', words: 'the queue it waits in' },
  { name: 'key', words: 'the job that has this key', example: 'order-42' },
  { name: 'keyPrefix', words: 'how its key begins', example: 'order-' },
  { name: 'schedule', words: 'made by this schedule' },
  { name: 'workflow', words: 'a step of this workflow' },
  { name: 'batch', words: 'a member of this batch' },
  { name: 'worker', words: 'runs or ran on this worker' },
  { name: 'since', words: 'created since: a time, or how long ago', example: '2h' },
  { name: 'until', words: 'created before: a time, or how long ago', example: '2h' },
  { name: 'errorCode', words: 'ended with this error code' },
  { name: 'fingerprint', words: 'failed like this group of errors' },
  { name: 'minAttempts', words: 'at least so many attempts', example: '2' },
  { name: 'maxAttempts', words: 'at most so many attempts', example: '1' },
  { name: PAYLOAD, words: 'a field of the payload', example: 'customer=7' },
];

const NAMES = new Set(FILTER_NAMES.map(({ name }) => name));

/** Whether there is a filter of this name. */
export function isFilterName(name: string): boolean {
  return name.startsWith(PAYLOAD) ? name.length > PAYLOAD.length : NAMES.has(name);
}

/** The filter that an address holds; other parameters are left out. */
export function filterOfQuery(query: URLSearchParams): JobFilter {
  return Object.fromEntries([...query].filter(([name, value]) => isFilterName(name) && value !== ''));
}

/** What the address holds besides the filter. */
export function addressWith(path: string, filter: JobFilter): string {
  const text = new URLSearchParams(filter as Record<string, string>).toString();
  return text === '' ? path : `${path}?${text}`;
}

/** One term of the query bar: where it stands, its name, and its value if it has one. */
export interface Term {
  readonly from: number;
  readonly to: number;
  readonly name: string;
  /** Null before the colon is typed. */
  readonly value: string | null;
}

const TERM = /(?:[^\s"]|"(?:[^"\\]|\\.)*"?)+/g;

/** The terms of a text: `state:failed task:send-mail payload.customer=7`. */
export function termsOf(text: string): Term[] {
  return [...text.matchAll(TERM)].map((match) => {
    const [whole] = match;
    const at = whole.search(/[:=]/);
    const place = { from: match.index, to: match.index + whole.length };
    if (at < 0) return { ...place, name: whole, value: null };
    return { ...place, name: whole.slice(0, at), value: unquoted(whole.slice(at + 1)) };
  });
}

/** The filter that a text means, or what is wrong with the text. */
export function filterOfText(text: string): { readonly filter: JobFilter } | { readonly wrong: string } {
  const filter: Record<string, string> = {};
  for (const { name, value } of termsOf(text)) {
    if (value === null || value === '')
      return {
        wrong: isFilterName(name)
          ? `${name} lacks a value.`
          : `Write ${name} as name:value, such as task:${name}.`,
      };
    if (!isFilterName(name)) return { wrong: `There is no filter ${name}; Ctrl-Space lists them.` };
    if (filter[name] !== undefined) return { wrong: `${name} stands there twice.` };
    filter[name] = value;
  }
  return { filter };
}

/** The filter as it stands in the query bar. */
export function textOfFilter(filter: JobFilter): string {
  return Object.entries(filter)
    .map(([name, value]) => termText(name, value))
    .join(' ');
}

/** One term as it stands in the query bar. */
export function termText(name: string, value: string): string {
  const sign = name.startsWith(PAYLOAD) ? '=' : ':';
  return `${name}${sign}${/^[^\s"]+$/.test(value) ? value : JSON.stringify(value)}`;
}

function unquoted(text: string): string {
  if (!text.startsWith('"')) return text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : text;
  } catch {
    return text.replace(/^"|"$/g, '');
  }
}

/** The path of the list with its filter. */
export function listPath(filter: JobFilter): string {
  return addressWith('/v1/jobs', filter);
}

/** The options of the command line that mean the filter. */
export function filterOptions(filter: JobFilter): string {
  return Object.entries(filter)
    .map(([name, value]) => {
      if (name.startsWith(PAYLOAD)) return `--payload ${quoted(`${name.slice(PAYLOAD.length)}=${value}`)}`;
      const option = name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      return `--${option} ${quoted(value)}`;
    })
    .join(' ');
}

const WHOLE = new Set(['minAttempts', 'maxAttempts']);

/** The filter for the body of a request that changes many jobs. Moments do not move on while it is carried out in parts. */
export function bodyFilter(filter: JobFilter, now: number): BodyFilter {
  const body: Record<string, unknown> = {};
  // Any name may stand in a path, also one that means something else in an object with a prototype.
  const payload: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(filter)) {
    if (name.startsWith(PAYLOAD)) payload[name.slice(PAYLOAD.length)] = scalarOf(value);
    else if (WHOLE.has(name)) body[name] = Number(value);
    else if (name === 'since' || name === 'until') body[name] = fixedMoment(value, now);
    else body[name] = value;
  }
  return { ...body, ...(Object.keys(payload).length > 0 && { payload }) } as BodyFilter;
}

const AGO = /^(\d{1,15}(?:\.\d{1,6})?)(ms|s|m|h|d)$/;
const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

function fixedMoment(text: string, now: number): string {
  const ago = AGO.exec(text);
  if (!ago) return text;
  return new Date(Math.max(0, now - Number(ago[1]) * UNITS[ago[2]!]!)).toISOString();
}

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;

/** The value that the text of a filter on the payload means, as the list of the API reads it. */
function scalarOf(text: string): string | number | boolean | null {
  if (text === 'null') return null;
  if (text === 'true' || text === 'false') return text === 'true';
  // A number that is too large for JavaScript would be another one; as text it fits nothing.
  if (NUMBER.test(text) && Math.abs(Number(text)) <= Number.MAX_SAFE_INTEGER) return Number(text);
  return text.startsWith('"') ? unquoted(text) : text;
}
