import Type from 'typebox';
import { MAX_IDS, MAX_PART } from '../wire.js';
import { nullable, strict } from './object.js';
import { JobFilter } from './query.js';
import { Id, line, Name } from './text.js';

const CHOICE = {
  filter: Type.Optional(JobFilter),
  ids: Type.Optional(Type.Array(Id, { minItems: 1, maxItems: MAX_IDS })),
  all: Type.Optional(
    Type.Boolean({ description: 'Every job of the tenant that can be changed in this way.' }),
  ),
  dryRun: Type.Optional(Type.Boolean({ description: 'Only count the jobs.' })),
  after: Type.Optional(line(64)),
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: MAX_PART,
      description:
        'Change about so many jobs in this call at most, to show how far it is or to stop in between.',
    }),
  ),
};

/** Which jobs to change, and from where to go on. */
export const ManyJobs = strict(CHOICE, {
  title: 'ManyJobs',
  description:
    'Give `ids`, a `filter` with at least one field, or else `all`; a dry run may leave all of them out. One call does a bounded part of the work: repeat it with `after` set to the `next` of the answer until that is null.',
  examples: [{ filter: { queue: 'mail', state: 'pending' }, dryRun: true }],
});

/** The same for dead letters; `task` and `queue` may be given without a `filter`. */
export const Redrive = strict(
  { ...CHOICE, task: Type.Optional(Name), queue: Type.Optional(Name) },
  {
    title: 'Redrive',
    description:
      'As ManyJobs. `task` and `queue` are short for those fields of `filter`. Without a state, jobs that have failed are meant.',
    examples: [{ task: 'send-mail' }],
  },
);

const ANSWER = {
  matched: Type.Integer({
    description: 'Jobs that matched in this part; with `more`, at least so many in all.',
  }),
  changed: Type.Integer(),
  dryRun: Type.Boolean(),
  more: Type.Boolean({ description: 'Whether more jobs may match: go on with `next`.' }),
  next: nullable(Type.String()),
  refused: Type.Array(
    Type.Object({ id: Type.String(), code: Type.String(), detail: Type.String() }, { title: 'RefusedJob' }),
    { description: 'Jobs of `ids` that cannot be changed, and jobs whose change failed.' },
  ),
};

/** How many jobs matched, and how many were changed. */
export const ManyJobsAnswer = Type.Object(ANSWER, { title: 'ManyJobsAnswer' });

/** The same for dead letters; `redriven` is the same number as `changed`. */
export const RedriveAnswer = Type.Object({ ...ANSWER, redriven: Type.Integer() }, { title: 'RedriveAnswer' });
