import Type, { type TSchema } from 'typebox';
import { BATCH_STATES } from '../batch.js';
import { EVENT_ID_PATTERN, EVENT_KINDS, EVENT_TYPES, MOST_SAMPLED } from '../events.js';
import { JOB_PARTS, JOB_STATES, NAME_FORM, NAME_PATTERN } from '../job.js';
import { MAX_PAYLOAD_CONDITIONS, PAYLOAD_PATH, type Scalar } from '../payload-filter.js';
import { defaulted, strict } from './object.js';
import { durationUpTo, ID_PATTERN, Id, line, Moment, MomentOrAgo, Name, Wait } from './text.js';

const Limit = Type.Integer({ minimum: 1, maximum: 1_000, default: 100 });

/** One or more of these words, with commas between them. */
export function someOf(words: readonly string[], example: string) {
  const word = `(${words.join('|')})`;
  return Type.String({
    pattern: `^${word}(,${word}){0,${words.length - 1}}$`,
    examples: [example],
    'x-expected': `one or more of ${words.join(', ')}, with commas between them`,
  });
}

/** Whether to count what is not live, too. */
export const WaitingQuery = strict({ include: Type.Optional(someOf(['later'], 'later')) });

/** Marks a text that is a list with commas, which may also be given as several parameters of one name. */
export const LIST = 'x-list';

/** A list with commas of what the pattern describes. */
function list(pattern: string, expected: string, example: string) {
  return Type.String({
    pattern: `^(?:${pattern})(?:,(?:${pattern})){0,${MOST_LISTED - 1}}$`,
    examples: [example],
    'x-expected': `one to ${MOST_LISTED} ${expected}, with commas between them`,
    [LIST]: true,
  });
}

const MOST_LISTED = 50;
const NAMES = list(NAME_PATTERN.source.slice(1, -1), `names, each of ${NAME_FORM}`, 'mail,reports');

/** Which events to tell: those to which everything applies that is given. */
export const EventQuery = strict({
  type: Type.Optional(
    list(
      [...EVENT_TYPES, ...EVENT_KINDS.map((kind) => `${kind}.*`)].map(literally).join('|'),
      `of ${EVENT_TYPES.join(', ')} or, for all of a kind, ${EVENT_KINDS.map((kind) => `${kind}.*`).join(', ')}`,
      'job.failed,queue.*',
    ),
  ),
  queue: Type.Optional(NAMES),
  task: Type.Optional(NAMES),
  schedule: Type.Optional(NAMES),
  job: Type.Optional(list(ID_PATTERN, 'ids of jobs', '01890a5d-ac96-774b-bcce-b302099a8057')),
  workflow: Type.Optional(list(ID_PATTERN, 'ids of workflows', '01890a5d-ac96-774b-bcce-b302099a8057')),
  batch: Type.Optional(list(ID_PATTERN, 'ids of batches', '01890a5d-ac96-774b-bcce-b302099a8057')),
  after: Type.Optional(
    Type.String({
      pattern: EVENT_ID_PATTERN.source,
      examples: ['7.1250000'],
      'x-expected': 'the id of an event, such as 7.1250000',
      description: 'Resume after this event, if the client cannot send the header `Last-Event-ID`.',
    }),
  ),
  sample: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MOST_SAMPLED,
      examples: [200],
      description:
        'Tell about so many events a second one by one, and of those beyond only their number by type, as `sum`, four times a second.',
    }),
  ),
  tenants: Type.Optional(
    Type.Enum(['all'], { type: 'string', description: 'Events of all tenants; for an operator only.' }),
  ),
});

function literally(text: string): string {
  return text.replace(/[.*]/g, '\\$&');
}

/** Parts of the items that are wanted however large they are. */
function include(parts: readonly string[]) {
  return someOf(parts, parts.join(','));
}

const Attempts = Type.Integer({ minimum: 0, maximum: 2 ** 31 - 1 });

/** Fields of the payload by their paths, each with the value that it must have. */
function payloadFields<T>(value: TSchema, description: string) {
  return Type.Unsafe<Record<string, T>>({
    type: 'object',
    description,
    maxProperties: MAX_PAYLOAD_CONDITIONS,
    propertyNames: Type.String({
      pattern: PAYLOAD_PATH,
      'x-expected': 'a path of names and indexes with dots between them, such as items.0.sku',
    }),
    additionalProperties: value,
  });
}

/** Text that Postgres can hold. */
const Comparable = Type.String({
  pattern: '^[^\\u0000\\ud800-\\udfff]{0,1024}$',
  'x-expected': 'text of at most 1024 characters without NUL',
});

/** Which jobs: those to which everything applies that is given. */
const JOB_FILTER = {
  state: Type.Optional(someOf(JOB_STATES, 'failed,cancelled')),
  task: Type.Optional(Name),
  queue: Type.Optional(Name),
  key: Type.Optional(line(512)),
  keyPrefix: Type.Optional(line(512)),
  worker: Type.Optional(Id),
  schedule: Type.Optional(Name),
  workflow: Type.Optional(Id),
  batch: Type.Optional(Id),
  since: Type.Optional(MomentOrAgo),
  until: Type.Optional(MomentOrAgo),
  errorCode: Type.Optional(line(256)),
  fingerprint: Type.Optional(
    Type.String({ pattern: '^[0-9a-f]{16}$', 'x-expected': 'a fingerprint of GET /v1/errors' }),
  ),
  minAttempts: Type.Optional(Attempts),
  maxAttempts: Type.Optional(Attempts),
};

/** The filters of the list of jobs, for changes of many jobs. */
export const JobFilter = strict(
  {
    ...JOB_FILTER,
    payload: Type.Optional(
      payloadFields<Scalar>(
        Type.Union([
          Comparable,
          Type.Number({ minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER }),
          Type.Boolean(),
          Type.Null(),
        ]),
        'Fields of the payload, each with the value that it must have.',
      ),
    ),
  },
  {
    title: 'JobFilter',
    description:
      '`since` (inclusive) and `until` (exclusive) are about when a job was stored, which its id tells; that may be some milliseconds after `createdAt`.',
    examples: [{ queue: 'mail', since: '2h', payload: { customer: 7 } }],
  },
);

/** Filters of the list of jobs. */
export const JobListQuery = strict({
  ...JOB_FILTER,
  payload: Type.Optional(
    payloadFields<string>(
      Comparable,
      'Fields of the payload, each with the value that it must have: `payload.customer=7` or `payload[customer]=7`. ' +
        'A JSON number, `true`, `false`, `null` or a string in quotes means that value; other text is a string.',
    ),
  ),
  include: Type.Optional(include(JOB_PARTS)),
  limit: defaulted(Limit),
  after: Type.Optional(line(512)),
});

/** One page of schedules. */
export const ScheduleListQuery = strict({
  include: Type.Optional(include(['payload'])),
  limit: defaulted(Limit),
  after: Type.Optional(line(512)),
});

/** One page of a list. */
export const PageQuery = strict({ limit: defaulted(Limit), after: Type.Optional(line(512)) });

/** One page of a list in the order of ids. */
export const IdPageQuery = strict({ limit: defaulted(Limit), after: Type.Optional(Id) });

/** Filters of the list of batches. */
export const BatchListQuery = strict({
  state: Type.Optional(someOf(BATCH_STATES, 'pending,running')),
  schedule: Type.Optional(Name),
  limit: defaulted(Limit),
  after: Type.Optional(Id),
});

/** One page of a list that is mostly short, and therefore whole unless it is asked for less. */
export const ShortListQuery = strict({
  limit: defaulted(Type.Integer({ minimum: 1, maximum: 1_000, default: 1_000 })),
  after: Type.Optional(line(512)),
});

/** How long to wait for the end of a job. */
export const WaitQuery = strict({ wait: Type.Optional(Wait) });

/** The same for a workflow, with what is large about its steps. */
export const WorkflowQuery = strict({
  wait: Type.Optional(Wait),
  include: Type.Optional(include(['attempts'])),
});

/** A part of a job's log. */
export const LogQuery = strict({
  limit: defaulted(Limit),
  after: defaulted(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 })),
});

const MAX_HISTORY_MS = 7 * 86_400_000;

/** How much history to add to the totals. */
export const StatsQuery = strict({ history: Type.Optional(durationUpTo(MAX_HISTORY_MS, '1h')) });

/** Whether to list every check; `?verbose` alone is enough. */
export const ReadyQuery = strict({
  verbose: Type.Optional(Type.Enum(['', 'true', 'false'], { type: 'string' })),
});

/** A query for a call that takes none. */
export const NoQuery = strict({});

/** A part of a schedule's ledger. */
export const LedgerQuery = strict({
  from: Type.Optional(Moment),
  to: Type.Optional(Moment),
  limit: defaulted(Limit),
  after: Type.Optional(line(64)),
});

/** The id in a path. */
export const IdPath = strict({ id: Id });

/** The id of a tenant in a path. */
export const TenantPath = strict({ id: Name });

/** The name in a path. */
export const NamePath = strict({ name: Name });

/** A query that nobody reads, so that a probe may say what it likes. */
export const AnyQuery = Type.Object({});
