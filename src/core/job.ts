import type { Shape } from './schemas/object.js';
import type * as submission from './schemas/submission.js';
import type * as target from './schemas/target.js';

/**
 * The words of a job: what people submit, what they read back. Shapes are those of the public contract. What people
 * submit has its shape from the schema that checks it.
 */

/** The rule for names of tasks, queues, schedules and tenants. */
export const NAME_PATTERN = /^[A-Za-z0-9._:-]{1,128}$/;
/** What completes "must be …" for a name. */
export const NAME_FORM = '1 to 128 letters, digits, ".", "_", "-" or ":"';
/** The same as a whole. */
export const NAME_RULE = `must be ${NAME_FORM}`;

export const JOB_STATES = [
  'blocked',
  'pending',
  'running',
  'succeeded',
  'failed',
  'cancelled',
  'skipped',
] as const;
export type JobState = (typeof JOB_STATES)[number];

/** States that no job leaves by itself. */
export const END_STATES = ['succeeded', 'failed', 'cancelled', 'skipped'] as const;
export type EndState = (typeof END_STATES)[number];

/** How often a job may be started. */
export type Delivery = Shape<typeof submission.Delivery>;

export const ATTEMPT_OUTCOMES = ['succeeded', 'failed', 'timed-out', 'lost', 'cancelled'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

export type HandlerTarget = Shape<typeof target.HandlerTarget>;
export type HttpTarget = Shape<typeof target.HttpTarget>;
export type ExecTarget = Shape<typeof target.ExecTarget>;
/** Where the work of a job happens. */
export type Target = HandlerTarget | HttpTarget | ExecTarget;
export type TargetType = Target['type'];

export type Labels = Readonly<Record<string, string>>;

/** What went wrong in an attempt, or why a job ended as it did. */
export interface JobError {
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
}

export interface Progress {
  readonly progress: number;
  readonly message?: string;
  readonly at: string;
}

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
  /** What is too large to be in this answer; of `attempts`, the newest are there. Missing when nothing is. */
  readonly omitted?: readonly JobPart[];
}

/** Parts of a job that lists leave out where they are large, unless they are asked for. */
export const JOB_PARTS = ['payload', 'result', 'stack', 'attempts'] as const;
export type JobPart = (typeof JOB_PARTS)[number];

/** A job in a list. */
export interface ListedJob extends Omit<Job, 'payload' | 'result'> {
  readonly payload?: unknown;
  readonly result?: unknown;
}

/** What a client sends to have a job run. */
export type JobSubmission = Shape<typeof submission.JobSubmission>;

/** The retry part of a submission; everything left out takes the default. */
export type RetryInput = Shape<typeof submission.Retry>;

/** Whether a job in this state stays in it for good. */
export function isEnded(state: JobState): state is EndState {
  return (END_STATES as readonly string[]).includes(state);
}
