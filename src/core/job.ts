import type { Shape } from './schemas/object.js';
import type * as submission from './schemas/submission.js';
import type * as target from './schemas/target.js';

/**
 * The shape of a job in the public contract: what users submit, and what they read back. What they submit has its shape
 * from the schema that checks it.
 */

/** The rule for names of tasks, queues, schedules and tenants. */
export const NAME_PATTERN = /^[A-Za-z0-9._:-]{1,128}$/;
/** Completes "must be …" in an error about a name. */
export const NAME_FORM = '1 to 128 letters, digits, ".", "_", "-" or ":"';
/** The whole sentence of that error. */
export const NAME_RULE = `must be ${NAME_FORM}`;

/** The states of a job. */
export const JOB_STATES = [
  'blocked',
  'pending',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'skipped',
] as const;
/** The state of a job. */
export type JobState = (typeof JOB_STATES)[number];

/** The states of a job that has ended. */
export const END_STATES = ['succeeded', 'failed', 'cancelled', 'skipped'] as const;
/** The state of a job that has ended. */
export type EndState = (typeof END_STATES)[number];

/** How often a job may start: again after a lost attempt, or once. */
export type Delivery = Shape<typeof submission.Delivery>;

/** How an attempt can end. */
export const ATTEMPT_OUTCOMES = ['succeeded', 'failed', 'timed-out', 'lost', 'cancelled'] as const;
/** How an attempt ended. */
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** A function in a worker, by the name of its task. */
export type HandlerTarget = Shape<typeof target.HandlerTarget>;
/** A call to a URL. */
export type HttpTarget = Shape<typeof target.HttpTarget>;
/** An uploaded binary or a command. */
export type ExecTarget = Shape<typeof target.ExecTarget>;

/** Where the work of a job happens. */
export type Target = HandlerTarget | HttpTarget | ExecTarget;
/** The kind of a target. */
export type TargetType = Target['type'];

/** What a worker offers, or a job requires, beyond its handler. */
export type Labels = Readonly<Record<string, string>>;

/** What went wrong in an attempt, or why a job ended as it did. */
export interface JobError {
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
}

/** How far an attempt has come, as its handler last said. */
export interface Progress {
  readonly progress: number;
  readonly message?: string;
  readonly at: string;
}

/** One attempt of a job. */
export interface Attempt {
  readonly attempt: number;
  readonly fence: number;
  readonly epoch: number;
  readonly worker: string;
  readonly claimedAt: string;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly outcome: AttemptOutcome | null;
  readonly error: JobError | null;
}

/** A job as the API shows it. */
export interface Job {
  readonly id: string;
  readonly tenant: string;
  readonly task: string | null;
  readonly target: Target;
  readonly queue: string;
  readonly state: JobState;
  readonly priority: number;
  readonly payload: unknown;
  readonly result: unknown;
  readonly error: JobError | null;
  readonly key: string | null;
  readonly hold: boolean;
  readonly runAt: string;
  readonly startBefore: string | null;
  readonly createdAt: string;
  readonly createdBy: string;
  readonly scheduledAt: string | null;
  readonly scheduledBy: string | null;
  readonly schedule: string | null;
  readonly workflow: string | null;
  readonly batch: string | null;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly retry: RetryInput;
  readonly timeout: string;
  readonly delivery: Delivery;
  readonly concurrencyKey: string | null;
  readonly requires: Labels;
  readonly fence: number;
  readonly worker: string | null;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly lateBy: number | null;
  readonly progress: Progress | null;
  readonly dependsOn: readonly string[];
  readonly dependents: readonly string[];
  readonly ancestors: readonly string[];
  readonly attempts: readonly Attempt[];
  /** The parts that are left out because they are large; of `attempts` only the oldest are. Missing when none is. */
  readonly omitted?: readonly JobPart[];
}

/** The parts of a job that lists leave out when they are large, unless they are asked for. */
export const JOB_PARTS = ['payload', 'result', 'stack', 'attempts'] as const;
/** A part of a job that a list may leave out. */
export type JobPart = (typeof JOB_PARTS)[number];

/** A job in a list. */
export interface ListedJob extends Omit<Job, 'payload' | 'result'> {
  readonly payload?: unknown;
  readonly result?: unknown;
}

/** What a client sends to have a job run. */
export type JobSubmission = Shape<typeof submission.JobSubmission>;

/** The retry part of a submission; what is left out takes its default. */
export type RetryInput = Shape<typeof submission.Retry>;

/** Whether a job in this state has ended. */
export function isEnded(state: JobState): state is EndState {
  return (END_STATES as readonly string[]).includes(state);
}
