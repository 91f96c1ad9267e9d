import Type, { type TNull, type TOptional, type TSchema, type TUnion } from 'typebox';
import { CATCH_UPS, DST_GAPS, DST_OVERLAPS, OVERLAPS } from '../schedule.js';
import { OCCURRENCE_STATES } from '../wire.js';
import { BatchSubmission } from './batch.js';
import { JobState } from './job.js';
import { nullable, page, strict } from './object.js';
import { JobSubmission } from './submission.js';
import { Duration, line, Moment, Name } from './text.js';

const Time = Type.String({ format: 'date-time' });

const Dst = strict(
  {
    gap: Type.Optional(Type.Enum(DST_GAPS, { type: 'string', default: 'shift' })),
    overlap: Type.Optional(Type.Enum(DST_OVERLAPS, { type: 'string', default: 'first' })),
  },
  { title: 'Dst', description: 'What becomes of times that a change of the clocks leaves out or repeats.' },
);

const CatchUp = Type.Union([Type.Enum(CATCH_UPS, { type: 'string' }), strict({ within: Duration })], {
  title: 'CatchUp',
  description: 'Which occurrences still run after downtime.',
  default: 'latest',
  'x-expected': '"none", "latest", "all" or {"within": a duration such as "6h"}',
});

const WHEN = {
  cron: Type.Optional(line(256)),
  every: Type.Optional(Duration),
  at: Type.Optional(Moment),
  timezone: Type.Optional(line(128)),
  dst: Type.Optional(Dst),
  startAt: Type.Optional(Moment),
  endAt: Type.Optional(Moment),
};

/** A schedule says of its jobs what a submission says, but for what belongs to a single job. */
const { runAt, delay, key, keyMode, keyWindow, startBefore, hold, ...JOB } = JobSubmission.properties;

const DEFINITION = {
  ...WHEN,
  jitter: Type.Optional(Duration),
  catchUp: Type.Optional(CatchUp),
  overlap: Type.Optional(Type.Enum(OVERLAPS, { type: 'string', default: 'allow' })),
  lateAfter: Type.Optional(Duration),
  workflow: Type.Optional(Name),
  batch: Type.Optional(BatchSubmission),
  ...JOB,
};

/** A schedule as people write it, apart from its name. */
export const ScheduleDefinition = strict(DEFINITION);

/** What a client sends to make a schedule. */
export const ScheduleInput = strict(
  { name: Name, paused: Type.Optional(Type.Boolean()), ...DEFINITION },
  {
    title: 'ScheduleInput',
    description:
      'Give exactly one of `cron`, `every` and `at`, and one of `task`, `target`, `workflow` and `batch`. `workflow` is the name of ' +
      'a definition, which takes `payload` as its input; the members of a batch have payloads of their own.',
    examples: [{ name: 'nightly', task: 'report', cron: '30 2 * * *', timezone: 'Europe/Berlin' }],
  },
);

/** How many schedules one request may bring. */
const MAX_SCHEDULES = 1_000;

/** The schedules that the code of a program says. */
export const ScheduleSet = strict(
  {
    managedBy: Name,
    schedules: Type.Array(ScheduleInput, { maxItems: MAX_SCHEDULES }),
    prune: Type.Optional(
      Type.Boolean({ description: 'Remove schedules of this program that are not in the set.' }),
    ),
    dryRun: Type.Optional(Type.Boolean()),
  },
  {
    title: 'ScheduleSet',
    examples: [
      {
        managedBy: 'orders',
        schedules: [{ name: 'nightly', task: 'report', cron: '30 2 * * *' }],
        prune: true,
      },
    ],
  },
);

/** What was done, or would be, so that the schedules are as the code says. */
export const AppliedSchedules = Type.Object(
  {
    created: Type.Array(Type.String()),
    changed: Type.Array(Type.String()),
    removed: Type.Array(Type.String()),
    unchanged: Type.Integer(),
    more: Type.Boolean({ description: 'Whether there are more to remove than one call does.' }),
    dryRun: Type.Boolean(),
  },
  { title: 'AppliedSchedules' },
);

type Nullable<P> = { [K in keyof P]: P[K] extends TSchema ? TOptional<TUnion<[P[K], TNull]>> : never };

/** What can be changed about a schedule; null takes a field back to its default. */
export const ScheduleChange = strict(
  Object.fromEntries(
    Object.entries(DEFINITION).map(([name, schema]) => [name, Type.Optional(nullable(schema))]),
  ) as Nullable<typeof DEFINITION>,
  { title: 'ScheduleChange', minProperties: 1 },
);

const VIEW = {
  id: Type.String(),
  tenant: Type.String(),
  name: Type.String(),
  paused: Type.Boolean(),
  ...DEFINITION,
  nextAt: nullable(Time),
  managedBy: nullable(Type.String({ description: 'The program that created it from its code.' })),
  lastAt: nullable(Time),
  lastJobId: nullable(Type.String()),
  lastWorkflowId: Type.Optional(Type.String()),
  lastBatchId: Type.Optional(Type.String()),
  createdAt: Time,
  createdBy: Type.String(),
  changedAt: Time,
  changedBy: Type.String(),
  version: Type.Integer(),
};

const LastJob = Type.Object(
  { id: Type.String(), state: JobState, errorCode: nullable(Type.String()) },
  {
    description:
      'How the job of `lastAt`, or else the newest one, fares. Missing in lists; null when its history was removed.',
  },
);

/** A schedule as the API shows it. */
export const ScheduleView = Type.Object(
  { ...VIEW, lastJob: Type.Optional(nullable(LastJob)) },
  { title: 'Schedule' },
);

/** A schedule in a list. */
const ListedSchedule = Type.Object(
  {
    ...VIEW,
    omitted: Type.Optional(
      Type.Array(Type.Literal('payload'), { description: 'What is too large to be in a list.' }),
    ),
  },
  { title: 'ListedSchedule' },
);

/** One page of schedules, by name. */
export const SchedulePage = page('SchedulePage', ListedSchedule);

const Occurrence = Type.Object(
  {
    at: Time,
    state: Type.Enum(OCCURRENCE_STATES, { type: 'string' }),
    jobId: Type.Optional(
      Type.String({ description: 'Its job; of a workflow or batch, the first of its jobs.' }),
    ),
    workflowId: Type.Optional(Type.String()),
    batchId: Type.Optional(Type.String()),
    lateBy: Type.Optional(Type.Integer({ description: 'Milliseconds between due time and start.' })),
    reason: Type.Optional(Type.String()),
    count: Type.Optional(Type.Integer({ description: 'Occurrences that were passed over together.' })),
    until: Type.Optional(Time),
  },
  { title: 'Occurrence' },
);

/** One page of the ledger, newest first. */
export const OccurrencePage = page('OccurrencePage', Occurrence);

/** Which moments a schedule would come to. */
export const PreviewRequest = strict(
  {
    ...WHEN,
    from: Type.Optional(Moment),
    count: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, default: 10 })),
  },
  { title: 'PreviewRequest' },
);

/** The moments; `note` marks those that a change of the clocks has moved or doubled. */
export const PreviewAnswer = Type.Object(
  { data: Type.Array(Type.Object({ at: Time, note: Type.Optional(Type.String()) })) },
  { title: 'PreviewAnswer' },
);

/** Which time to fill; with `dryRun` it is only said what would run. */
export const BackfillRequest = strict(
  { from: Moment, to: Moment, dryRun: Type.Optional(Type.Boolean()) },
  { title: 'BackfillRequest' },
);

/** The occurrences without a run on record. */
export const BackfillAnswer = Type.Object(
  {
    matched: Type.Integer(),
    started: Type.Integer(),
    dryRun: Type.Boolean(),
    occurrences: Type.Array(Time),
  },
  { title: 'BackfillAnswer' },
);
