import Type from 'typebox';
import { type Duration as DurationText, formatDuration, parseDuration } from '../duration.js';
import { NAME_FORM, NAME_PATTERN } from '../job.js';
import { parseMoment } from '../moment.js';

/**
 * The kinds of text that the API takes. `x-expected` completes the sentence "must be …" in an error, and
 * stands beside the pattern in the OpenAPI document. `x-format` is what that document calls `format`: there it
 * tells readers more, here it would only check a second time what is checked already, on the hot path.
 */

/** Names of tasks, queues and tenants. */
export const Name = Type.String({
  pattern: NAME_PATTERN.source,
  'x-expected': NAME_FORM,
});

/** The rule for ids of jobs and workers, without its ends. */
export const ID_PATTERN = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}';

/** Ids of jobs and workers, in the one spelling that the product prints. */
export const Id = Type.String({
  'x-format': 'uuid',
  pattern: `^${ID_PATTERN}$`,
  'x-expected': 'a UUID in lower case',
});

const DURATION_PATTERN = '^[0-9]{1,15}(\\.[0-9]{1,6})?(ms|s|m|h|d)$';

/** A duration as people write it. */
export const Duration = Type.Refine(
  Type.Unsafe<DurationText>(
    Type.String({
      pattern: DURATION_PATTERN,
      examples: ['30s'],
      'x-expected': 'a duration such as 250ms, 30s, 20m, 6h or 2d',
    }),
  ),
  (text) => parseDuration(text) !== null,
);

/** A duration with a bound. */
export function durationUpTo(maxMs: number, example: string) {
  return Type.Refine(
    Type.String({
      pattern: DURATION_PATTERN,
      examples: [example],
      'x-expected': `a duration of at most ${formatDuration(maxMs)}, such as ${example}`,
    }),
    (text) => (parseDuration(text) ?? Number.POSITIVE_INFINITY) <= maxMs,
  );
}

/** The longest that a call may wait for something to happen. */
export const MAX_WAIT_MS = 60_000;

/** How long a call waits for something to happen. */
export const Wait = durationUpTo(MAX_WAIT_MS, '20s');

/** A moment in RFC 3339. */
export const Moment = Type.Refine(
  Type.String({
    'x-format': 'date-time',
    maxLength: 40,
    examples: ['2026-12-24T18:00:00Z'],
    'x-expected': 'an RFC 3339 time such as 2026-12-24T18:00:00Z',
  }),
  (text) => parseMoment(text) !== null,
);

/** A moment, or how long ago it was. */
export const MomentOrAgo = Type.Refine(
  Type.String({
    maxLength: 40,
    examples: ['2h', '2026-12-24T18:00:00Z'],
    'x-expected': 'an RFC 3339 time such as 2026-12-24T18:00:00Z, or how long ago, such as 2h',
  }),
  (text) => parseMoment(text) !== null || parseDuration(text) !== null,
);

/**
 * One line of text without control characters. Postgres text holds neither NUL nor half of a surrogate pair,
 * and two keys that differ in such a half only would become one.
 */
export function line(maxLength: number, minLength = 1) {
  return Type.String({
    pattern: `^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]{${minLength},${maxLength}}$`,
    'x-expected': `text of ${minLength} to ${maxLength} characters without control characters`,
  });
}

/** Text of any number of lines, such as an argument of a program. */
export function passage(maxLength: number) {
  return Type.String({
    pattern: `^[^\\u0000-\\u0008\\u000b\\u000c\\u000e-\\u001f\\u007f\\ud800-\\udfff]{0,${maxLength}}$`,
    'x-expected': `text of 0 to ${maxLength} characters without control characters other than tabs and line ends`,
  });
}

/**
 * What a handler says about itself: messages, stacks, log lines. Any text is taken, because refusing a report
 * for a character in it would hold back the results that travel with it; it is stored as JSON, which can hold
 * every character.
 */
export const Words = Type.String();

/** A map from text to text with bounds, such as labels or headers. */
export function texts(maxEntries: number, maxLength: number) {
  return Type.Unsafe<Record<string, string>>({
    type: 'object',
    maxProperties: maxEntries,
    propertyNames: line(128),
    additionalProperties: line(maxLength, 0),
  });
}

/** Labels of a worker, and what a job requires of one. */
export const Labels = texts(32, 256);

/** Any JSON value, kept as it is. */
export const Json = Type.Unknown({ description: 'Any JSON value.' });

/** A fence: the number of the attempt. */
export const Fence = Type.Integer({ minimum: 1, maximum: 2 ** 31 - 1 });

/** The number of a term. 0 before any was seen. */
export const Epoch = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
