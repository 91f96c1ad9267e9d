import Type, { type TSchema } from 'typebox';
import { SETTINGS } from '../config.js';
import { KEY_MODES } from '../keys.js';
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

/** What is done with the job that has the key of a submission. */
export const KeyMode = Type.Enum(KEY_MODES, {
  type: 'string',
  description:
    'What happens if the key has a job: `keep` answers with it; `replace` gives it this submission if it has not started; ' +
    '`debounce` does so and postpones it by `keyWindow`; `throttle` makes at most one job per `keyWindow`; ' +
    '`reuse-when-ended` makes a new one if it has ended. Default `keep`.',
});

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
    keyMode: Type.Optional(KeyMode),
    keyWindow: Type.Optional(Duration),
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

/** The fields of a submission that differ from the job with its key. */
export const Differs = Type.Array(Type.String(), {
  description: 'The fields in which a repeated submission differs from the job as it was.',
});

/** The ids of a bulk submission, in its order, and what is to be said about repeated keys. */
export const BulkAnswer = Type.Object(
  {
    ids: Type.Array(Type.String()),
    repetitions: Type.Array(
      Type.Object(
        { index: Type.Integer(), replaced: Type.Boolean(), differs: Differs },
        { title: 'BulkRepetition', description: 'A job of the bulk whose key had a job already.' },
      ),
    ),
  },
  { title: 'BulkAnswer' },
);

/** What can be changed about a job that has not started. */
export const JobChange = strict(
  {
    runAt: Type.Optional(Moment),
    priority: Type.Optional(Type.Integer({ minimum: 1, maximum: 9 })),
    payload: Type.Optional(Json),
  },
  { title: 'JobChange', minProperties: 1 },
);
