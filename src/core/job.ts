/** The words of a job: what people submit, what they read back. Shapes are those of the public contract. */

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

export type Delivery = 'at-least-once' | 'at-most-once';

export const ATTEMPT_OUTCOMES = ['succeeded', 'failed', 'timed-out', 'lost', 'cancelled'] as const;
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

export interface HandlerTarget {
  readonly type: 'handler';
  readonly name: string;
}

export interface HttpTarget {
  readonly type: 'http';
  readonly url: string;
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface ExecTarget {
  readonly type: 'exec';
  readonly artifact?: string;
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

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
export interface JobSubmission {
  readonly task?: string;
  readonly target?: Target;
  readonly payload?: unknown;
  readonly runAt?: string;
  readonly delay?: string;
  readonly queue?: string;
  readonly priority?: number;
  readonly key?: string;
  readonly retry?: RetryInput;
  readonly timeout?: string;
  readonly delivery?: Delivery;
  readonly concurrencyKey?: string;
  readonly requires?: Labels;
  readonly startBefore?: string;
  readonly hold?: boolean;
}

/** The retry part of a submission; everything left out takes the default. */
export interface RetryInput {
  readonly maxAttempts?: number;
  readonly backoff?: {
    readonly base?: string;
    readonly factor?: number;
    readonly max?: string;
    readonly jitter?: number;
  };
  readonly onWorkerLost?: { readonly maxAttempts?: number };
}

/** Whether a job in this state stays in it for good. */
export function isEnded(state: JobState): state is EndState {
  return (END_STATES as readonly string[]).includes(state);
}
