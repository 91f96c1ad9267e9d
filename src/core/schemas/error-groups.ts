import Type from 'typebox';
import { defaulted, nullable, strict } from './object.js';
import { durationUpTo, Name } from './text.js';

/** How far back groups of errors go. */
const MAX_BACK_MS = 30 * 86_400_000;

/** Which failed jobs are grouped. */
export const ErrorQuery = strict({
  since: Type.Optional(durationUpTo(MAX_BACK_MS, '24h')),
  task: Type.Optional(Name),
  queue: Type.Optional(Name),
  limit: defaulted(Type.Integer({ minimum: 1, maximum: 1_000, default: 100 })),
});

const Time = Type.String({ format: 'date-time' });

/** Failed jobs that have failed alike. */
export const ErrorGroupView = Type.Object(
  {
    fingerprint: Type.String({
      description: 'For the filter `fingerprint` of lists and of changes of many jobs.',
    }),
    task: nullable(Type.String()),
    code: nullable(Type.String()),
    message: Type.String({
      description: 'The first line of the message, with `#` for whatever has a digit in it.',
    }),
    count: Type.Integer(),
    firstSeen: Time,
    lastSeen: Time,
    exampleJobId: Type.String({ description: 'The job that failed last.' }),
    counts: Type.Array(Type.Integer(), {
      description: 'Failed jobs per interval, the oldest interval first.',
    }),
  },
  { title: 'ErrorGroup' },
);

/** Groups of errors. */
export const ErrorGroupsView = Type.Object(
  {
    data: Type.Array(ErrorGroupView),
    next: Type.Null(),
    from: Time,
    to: Time,
    intervalMs: Type.Integer(),
    examined: Type.Integer({ description: 'How many failed jobs were grouped.' }),
    complete: Type.Boolean({
      description:
        'Whether these are all failed jobs of the time; else they are the newest 10,000 by submission.',
    }),
  },
  { title: 'ErrorGroups' },
);
