import Type, { type TSchema } from 'typebox';
import { BATCH_STATES, MAX_MEMBERS, ON_MEMBER_FAILURE } from '../batch.js';
import { JobState } from './job.js';
import { nullable, page, strict } from './object.js';
import { JobSubmission } from './submission.js';
import { Duration } from './text.js';

const OnFailure = Type.Enum(ON_MEMBER_FAILURE, {
  type: 'string',
  default: 'cancel-rest',
  description:
    'What becomes of the other members when one fails or is lost: `cancel-rest` cancels them, `continue` lets them run.',
});

function batchOf<S extends TSchema>(job: S) {
  return strict(
    {
      jobs: Type.Array(job, { minItems: 1, maxItems: MAX_MEMBERS }),
      onFailure: Type.Optional(OnFailure),
      startTimeout: Type.Optional(Duration),
    },
    {
      title: 'BatchSubmission',
      description:
        'Jobs that start together or not at all. A member has one attempt each time the batch starts, so it takes no `retry`; ' +
        'nor does it take `key`, `keyMode`, `keyWindow`, `hold` or `startBefore`. The batch may start once its last member is due.',
      examples: [{ jobs: [{ task: 'shard-0' }, { task: 'shard-1' }], startTimeout: '5m' }],
    },
  );
}

/** Jobs that are to start together. */
export const BatchSubmission = batchOf(JobSubmission);

/** What surrounds the members. They are checked one by one, so that others have their turn in between. */
export const BatchEnvelope = batchOf(Type.Unknown());

const Text = Type.String();
const Time = Type.String({ format: 'date-time' });

const FIELDS = {
  id: Text,
  tenant: Text,
  state: Type.Enum(BATCH_STATES, { type: 'string' }),
  onFailure: Type.Enum(ON_MEMBER_FAILURE, { type: 'string' }),
  startTimeout: nullable(Duration),
  size: Type.Integer({ description: 'How many members it has.' }),
  run: Type.Integer({ description: 'Counts how often it was set going, by its submission and by retries.' }),
  dueAt: Type.String({ format: 'date-time', description: 'When its last member is due.' }),
  schedule: nullable(Type.String({ description: 'The schedule that made it.' })),
  scheduledAt: nullable(
    Type.String({ format: 'date-time', description: 'Its occurrence; null for one that was run by hand.' }),
  ),
  createdAt: Time,
  createdBy: Text,
  startedAt: nullable(Time),
  endedAt: nullable(Time),
  error: nullable(
    Type.Object(
      { message: Text, code: Type.Optional(Text), stack: Type.Optional(Text) },
      { title: 'BatchError', description: 'Why it failed without having started.' },
    ),
  ),
};

/** A batch and its members. */
export const Batch = Type.Object(
  {
    ...FIELDS,
    jobs: Type.Array(Type.Object({ id: Text, state: JobState }, { title: 'BatchMember' }), {
      description: 'In the order in which they were submitted; those that were deleted are missing.',
    }),
  },
  { title: 'Batch' },
);

/** One page of batches, newest first. */
export const BatchPage = page('BatchPage', Type.Object(FIELDS, { title: 'BatchSummary' }));

/** What a batch waits for. */
export const BatchWhy = Type.Object(
  {
    batchId: Text,
    state: Text,
    waitingFor: nullable(Text),
    detail: Text,
    figures: Type.Record(
      Type.String(),
      Type.Union([Type.Number(), Type.String(), Type.Boolean(), Type.Null()]),
    ),
  },
  { title: 'BatchWhy' },
);
