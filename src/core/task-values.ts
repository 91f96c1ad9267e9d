import { parseDuration } from './duration.js';
import { type FieldError, invalid } from './errors.js';
import { NAME_FORM, NAME_PATTERN } from './job.js';

/**
 * Checks the values of a task's options when the task is defined, instead of with its first job. Nodes check jobs by schemas,
 * which are too large to be loaded by every program; a test proves that the two agree.
 */

interface Rule {
  readonly expected: string;
  readonly fits: (value: unknown) => boolean;
}

const isWithin = (value: unknown, min: number, max: number): boolean =>
  typeof value === 'number' && value >= min && value <= max;

const wholeNumber = (min: number, max: number): Rule => ({
  expected: `a whole number from ${min} to ${max}`,
  fits: (value) => Number.isInteger(value) && isWithin(value, min, max),
});

const number = (min: number, max: number): Rule => ({
  expected: `a number from ${min} to ${max}`,
  fits: (value) => isWithin(value, min, max),
});

const msOf = (value: unknown): number | null => (typeof value === 'string' ? parseDuration(value) : null);

const DURATION: Rule = {
  expected: 'a duration such as 250ms, 30s, 20m, 6h or 2d',
  fits: (value) => msOf(value) !== null,
};

const MAX_ATTEMPTS = wholeNumber(1, 1_000);

/** By the steps to the option. What is inside of an object is looked at after the object. */
const RULES: Readonly<Record<string, Rule>> = {
  '/queue': {
    expected: NAME_FORM,
    fits: (value) => typeof value === 'string' && NAME_PATTERN.test(value),
  },
  '/priority': wholeNumber(1, 9),
  '/timeout': { ...DURATION, fits: (value) => (msOf(value) ?? 0) >= 1 },
  '/delivery': {
    expected: 'at-least-once or at-most-once',
    fits: (value) => value === 'at-least-once' || value === 'at-most-once',
  },
  '/requires': {
    expected: 'an object of labels such as { region: "eu" }',
    fits: (value) => isObject(value) && Object.values(value).every((label) => typeof label === 'string'),
  },
  '/retry': { expected: 'an object such as { maxAttempts: 6 }', fits: isObject },
  '/retry/maxAttempts': MAX_ATTEMPTS,
  '/retry/backoff': { expected: 'an object such as { base: "2s" }', fits: isObject },
  '/retry/backoff/base': DURATION,
  '/retry/backoff/factor': number(1, 100),
  '/retry/backoff/max': DURATION,
  '/retry/backoff/jitter': number(0, 1),
  '/retry/onWorkerLost': { expected: 'an object such as { maxAttempts: 3 }', fits: isObject },
  '/retry/onWorkerLost/maxAttempts': MAX_ATTEMPTS,
};

/** Throws INVALID_REQUEST if an option has a value that no node would accept. What is undefined is left open. */
export function checkValues(of: string, options: object): void {
  const errors: FieldError[] = [];
  for (const [pointer, { expected, fits }] of Object.entries(RULES)) {
    const value = valueAt(options, pointer);
    if (value === undefined || fits(value)) continue;
    errors.push({ pointer, detail: `${of} needs ${expected}, got ${shown(value)}` });
  }
  if (errors.length > 0) throw invalid(errors);
}

function valueAt(options: object, pointer: string): unknown {
  let found: unknown = options;
  for (const step of pointer.split('/').slice(1))
    found = isObject(found) ? (found as Readonly<Record<string, unknown>>)[step] : undefined;
  return found;
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function shown(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value) : String(value);
}
