import Type from 'typebox';
import { ATTEMPT_OUTCOMES, JOB_PARTS, JOB_STATES, RELATIVE_LISTS } from '../job.js';
import { LOG_LEVELS } from '../wire.js';
import { Execution } from './attempt.js';
import { nullable, page } from './object.js';
import { Delivery, Differs, Retry } from './submission.js';
import { Target } from './target.js';
import { Json, Labels } from './text.js';

/** A state of a job. */
export const JobState = Type.Enum(JOB_STATES, { type: 'string' });

const Text = Type.String();
const Time = Type.String({ format: 'date-time' });
const Whole = Type.Integer();

/** What went wrong, as it is read back. */
const ERROR = { message: Text, code: Type.Optional(Text), stack: Type.Optional(Text) };
const StoredError = Type.Object(ERROR, { title: 'JobError' });
const EndError = Type.Object(
  {
    ...ERROR,
    job: Type.Optional(Type.String({ description: 'With `DUPLICATE_KEY`, the job that has the key.' })),
  },
  { title: 'EndError' },
);

const Attempt = Type.Object(
  {
    attempt: Whole,
    fence: Whole,
    epoch: Whole,
    worker: Text,
    claimedAt: Time,
    startedAt: nullable(Time),
    finishedAt: nullable(Time),
    outcome: nullable(Type.Enum(ATTEMPT_OUTCOMES, { type: 'string' })),
    error: nullable(StoredError),
    execution: Type.Optional(Execution),
  },
  { title: 'Attempt' },
);

const Progress = Type.Object(
  { progress: Type.Number({ minimum: 0, maximum: 1 }), message: Type.Optional(Text), at: Time },
  { title: 'Progress' },
);

/** What a step of a workflow waits for besides steps. */
export const StepWait = Type.Object(
  {
    event: nullable(Text),
    until: nullable(
      Type.String({
        format: 'date-time',
        description:
          'When it has waited long enough; null for a workflow, and for an event without a timeout.',
      }),
    ),
    workflow: nullable(
      Type.String({ description: 'The id of the workflow; null as long as it is not stored.' }),
    ),
  },
  {
    title: 'StepWait',
    description: 'What a step whose turn has come waits for: an event, a time or a workflow.',
  },
);

/** The steps around a job. */
const RELATIVES = {
  dependsOn: Type.Array(Text, { description: 'The steps that it waits for.' }),
  dependents: Type.Array(Text, { description: 'The steps that wait for it.' }),
  ancestors: Type.Array(Text, { description: 'All steps before it, the nearest first.' }),
  descendants: Type.Array(Text, { description: 'All steps behind it, the nearest first.' }),
};

const FIELDS = {
  id: Text,
  tenant: Text,
  task: nullable(Text),
  target: Target,
  queue: Text,
  state: JobState,
  priority: Whole,
  error: nullable(EndError),
  key: nullable(Text),
  hold: Type.Boolean(),
  runAt: Time,
  startBefore: nullable(Time),
  createdAt: Time,
  createdBy: Text,
  scheduledAt: nullable(Time),
  scheduledBy: nullable(Text),
  schedule: nullable(Text),
  workflow: nullable(Text),
  step: nullable(Type.String({ description: 'The name of the step of that workflow that it is.' })),
  waitsFor: nullable(StepWait),
  batch: nullable(Text),
  attempt: Type.Integer({
    description: 'Counts every attempt, also lost ones and those before the job was run again.',
  }),
  failures: Type.Integer({
    description: 'The failed attempts that count against `maxAttempts`; none when a job is run again.',
  }),
  maxAttempts: Whole,
  retry: Retry,
  timeout: Text,
  delivery: Delivery,
  concurrencyKey: nullable(Text),
  requires: Labels,
  fence: Whole,
  worker: nullable(Text),
  startedAt: nullable(Time),
  handedOnAt: nullable(
    Type.String({
      format: 'date-time',
      description:
        'When the worker handed the running attempt on; whoever has it reports its end with its token.',
    }),
  ),
  cancelRequestedAt: nullable(
    Type.String({
      format: 'date-time',
      description: 'When somebody asked to cancel the attempt that runs; its worker has been told to stop.',
    }),
  ),
  finishedAt: nullable(Time),
  lateBy: nullable(
    Type.Integer({ description: 'Milliseconds between the due time and the start of the first attempt.' }),
  ),
  progress: nullable(Progress),
  relativesCut: Type.Optional(
    Type.Array(Type.Enum(RELATIVE_LISTS, { type: 'string' }), {
      description: 'Those of these lists that hold only the first thousand. Missing when all are whole.',
    }),
  ),
  attempts: Type.Array(Attempt),
  omitted: Type.Optional(
    Type.Array(Type.Enum(JOB_PARTS, { type: 'string' }), {
      description: 'What is too large to be in this answer; of `attempts`, the newest are there.',
    }),
  ),
};

/** A job as the API shows it. */
export const Job = Type.Object({ ...FIELDS, ...RELATIVES, payload: Json, result: Json }, { title: 'Job' });

/** A job as the answer to its submission shows it. */
export const SubmittedJob = Type.Object(
  {
    ...FIELDS,
    ...RELATIVES,
    payload: Json,
    result: Json,
    repeated: Type.Boolean({ description: 'Whether the key already had this job.' }),
    replaced: Type.Boolean({ description: 'Whether the job took what this submission says.' }),
    differs: Differs,
  },
  { title: 'SubmittedJob' },
);

/** A job in a list. */
const ListedJob = Type.Object(
  {
    ...FIELDS,
    dependsOn: Type.Optional(RELATIVES.dependsOn),
    dependents: Type.Optional(RELATIVES.dependents),
    ancestors: Type.Optional(RELATIVES.ancestors),
    descendants: Type.Optional(RELATIVES.descendants),
    payload: Type.Optional(Json),
    result: Type.Optional(Json),
  },
  {
    title: 'ListedJob',
    description: 'Of a step of a workflow, the four lists of steps around it are left out.',
  },
);

/** One page of jobs, newest first. */
export const JobPage = Type.Object(
  {
    ...page('JobPage', ListedJob).properties,
    scanned: Type.Integer({ description: 'How many jobs were looked at for this page.' }),
    complete: Type.Boolean({
      description:
        'False if the search stopped at its bound before the page was full, even if `data` is empty: go on with `next`.',
    }),
  },
  { title: 'JobPage' },
);

/** One page of a job's log. */
export const LogPage = page(
  'LogPage',
  Type.Object(
    { at: Time, level: Type.Enum(LOG_LEVELS, { type: 'string' }), message: Text, fence: Whole },
    { title: 'StoredLogLine' },
  ),
);

/** What a job that is not running waits for. */
export const Why = Type.Object(
  {
    jobId: Text,
    state: Text,
    gate: Type.Enum(
      [
        'parents',
        'event',
        'workflow',
        'artifact',
        'due-time',
        'hold',
        'cluster-paused',
        'queue-paused',
        'no-fitting-worker',
        'no-free-slot',
        'limit',
        'rate',
        'origin',
        'share',
        'behind-others',
        'not-admitted',
        'being-claimed',
        'batch',
        'not-waiting',
      ],
      { type: 'string' },
    ),
    detail: Text,
    figures: Type.Unsafe<Record<string, number | string | boolean | null>>({
      type: 'object',
      additionalProperties: { type: ['number', 'string', 'boolean', 'null'] },
    }),
  },
  { title: 'Why' },
);
