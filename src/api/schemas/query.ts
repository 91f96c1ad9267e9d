import Type from 'typebox';
import { JobState } from './job.js';
import { strict } from './object.js';
import { Duration, Id, line, Moment, Name, Wait } from './text.js';

const Limit = Type.Integer({ minimum: 1, maximum: 1_000, default: 100 });

/** Filters of the list of jobs. */
export const JobListQuery = strict({
  state: Type.Optional(JobState),
  task: Type.Optional(Name),
  queue: Type.Optional(Name),
  key: Type.Optional(line(512)),
  worker: Type.Optional(Id),
  schedule: Type.Optional(Name),
  limit: Type.Optional(Limit),
  after: Type.Optional(line(512)),
});

/** One page of a list. */
export const PageQuery = strict({ limit: Type.Optional(Limit), after: Type.Optional(line(512)) });

/** How long to wait for the end of a job. */
export const WaitQuery = strict({ wait: Type.Optional(Wait) });

/** A part of a job's log. */
export const LogQuery = strict({
  limit: Type.Optional(Limit),
  after: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, default: 0 })),
});

/** How much history to add to the totals. */
export const StatsQuery = strict({ history: Type.Optional(Duration) });

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
  limit: Type.Optional(Limit),
  after: Type.Optional(line(64)),
});

/** The id in a path. */
export const IdPath = strict({ id: Id });

/** The id of a tenant in a path. */
export const TenantPath = strict({ id: Name });

/** The name in a path. */
export const NamePath = strict({ name: Name });
