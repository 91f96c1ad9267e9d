import Type, { type TSchema } from 'typebox';
import { SETTINGS } from '../config.js';
import { strict } from './object.js';
import { Target } from './target.js';
import { Duration, Json, Labels, line, Moment, Name } from './text.js';

/** How urgent a job is. */
export const Priority = Type.Integer({ minimum: 1, maximum: 9, default: 5, description: '9 starts first.' });
const MaxAttempts = Type.Integer({ minimum: 1, maximum: 1_000 });

/** When failed and lost attempts are followed by another one. */
export const Retry = strict(
  {
    maxAttempts: Type.Optional(MaxAttempts),
    backoff: Type.Optional(
      strict({
        base: Type.Optional(Duration),
        factor: Type.Optional(Type.Number({ minimum: 1, maximum: 100 })),
        max: Type.Optional(Duration),
        jitter: Type.Optional(Type.Number({ minimum: 0, maximum: 1 })),
      }),
    ),
    onWorkerLost: Type.Optional(strict({ maxAttempts: Type.Optional(MaxAttempts) })),
  },
  { title: 'Retry' },
);

/** How often a job may be started. */
export const Delivery = Type.Enum(['at-least-once', 'at-most-once'], { type: 'string' });

/** What a client sends to have a job run. */
export const JobSubmission = strict(
  {
    task: Type.Optional(Name),
    target: Type.Optional(Target),
    payload: Type.Optional(Json),
    runAt: Type.Optional(Moment),
    delay: Type.Optional(Duration),
    queue: Type.Optional(Name),
    priority: Type.Optional(Priority),
    key: Type.Optional(line(512)),
    retry: Type.Optional(Retry),
    timeout: Type.Optional(Duration),
    delivery: Type.Optional(Delivery),
    concurrencyKey: Type.Optional(line(512)),
    requires: Type.Optional(Labels),
    startBefore: Type.Optional(Moment),
    hold: Type.Optional(Type.Boolean()),
  },
  {
    title: 'JobSubmission',
    description: 'Give either `task` or `target`; at most one of `runAt` and `delay`, neither means now.',
    examples: [{ task: 'send-mail', payload: { to: 'a@example.com' }, delay: '30s', key: 'order-42' }],
  },
);

function bulkOf<S extends TSchema>(job: S, maxJobs: number) {
  return strict({ jobs: Type.Array(job, { minItems: 1, maxItems: maxJobs }) }, { title: 'BulkSubmission' });
}

/** Many submissions, stored all or none; how many is a setting of the node, here the default. */
export const BulkSubmission = bulkOf(JobSubmission, SETTINGS.maxBulkJobs.default);

/** What surrounds many submissions. They are checked one by one, so that others have their turn in between. */
export function bulkEnvelope(maxJobs: number) {
  return bulkOf(Type.Unknown(), maxJobs);
}

/** The ids of a bulk submission, in its order. */
export const BulkAnswer = Type.Object({ ids: Type.Array(Type.String()) }, { title: 'BulkAnswer' });

/** What can be changed about a job that has not started. */
export const JobChange = strict(
  {
    runAt: Type.Optional(Moment),
    priority: Type.Optional(Type.Integer({ minimum: 1, maximum: 9 })),
    payload: Type.Optional(Json),
  },
  { title: 'JobChange', minProperties: 1 },
);

/** Which dead letters to send round again; with `dryRun` they are only counted. */
export const Redrive = strict(
  {
    task: Type.Optional(Name),
    queue: Type.Optional(Name),
    all: Type.Optional(Type.Boolean({ description: 'Every dead letter of the tenant.' })),
    dryRun: Type.Optional(Type.Boolean()),
  },
  {
    title: 'Redrive',
    description: 'Give `task`, `queue` or both, or else `all`; a dry run may leave all of them out.',
    examples: [{ task: 'send-mail' }],
  },
);

/** How many dead letters matched and how many were sent round again. */
export const RedriveAnswer = Type.Object(
  { matched: Type.Integer(), redriven: Type.Integer(), dryRun: Type.Boolean(), more: Type.Boolean() },
  { title: 'RedriveAnswer' },
);
