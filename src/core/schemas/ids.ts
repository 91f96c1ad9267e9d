import Type from 'typebox';
import { strict } from './object.js';

/** The beginning of an id, to be completed. */
export const IdQuery = strict({
  kind: Type.Enum(['job', 'worker'], { type: 'string' }),
  prefix: Type.String({
    pattern: '^[0-9a-f]{8}[0-9a-f-]{0,28}$',
    examples: ['0198c4f2-5e1b-7a'],
    'x-expected': 'at least the first 8 characters of a UUID in lower case',
  }),
});

/** The ids that begin so, the oldest first. */
export const MatchingIds = Type.Object(
  {
    ids: Type.Array(Type.String()),
    more: Type.Boolean({ description: 'Whether there are, or may be, more than these.' }),
  },
  { title: 'MatchingIds' },
);
