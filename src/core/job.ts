import type { Duration } from './duration.js';
import type { Execution } from './execution.js';
import type { KeyMode, Repetition } from './keys.js';
import type { StepWait } from './workflow.js';

/**
 * The shape of a job in the public contract: what users submit, and what they read back. The types are written out and
 * not derived from the schemas that check them, because a program that uses them would have to compile all of TypeBox.
 * `schemas/schemas.test-d.ts` proves that both are the same.
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
export type Delivery = 'at-least-once' | 'at-most-once';

/** How an attempt can end. */
export const ATTEMPT_OUTCOMES = ['succeeded', 'failed', 'timed-out', 'lost', 'cancelled'] as const;
/** How an attempt ended. */
export type AttemptOutcome = (typeof ATTEMPT_OUTCOMES)[number];

/** A function in a worker, by the name of its task. */
export interface HandlerTarget {
  readonly type: 'handler';
  readonly name: string;
}

/** A call to a URL. */
export interface HttpTarget {
  readonly type: 'http';
  readonly url: string;
  /** Default `POST`. */
  readonly method?: string;
  /** Values may refer to secrets of the tenant. */
  readonly headers?: Readonly<Record<string, string | SecretReference>>;
  /** Default: the payload. Any value in it may be a reference to a secret. */
  readonly body?: unknown;
  /** The statuses that mean success. Default: 200 to 299. */
  readonly expect?: readonly number[];
  /** `auto` (the default): 202 means that the receiver will report the end; `response`: 202 is an answer like any other. */
  readonly completion?: 'auto' | 'response';
  /** How long one call may take until its answer has arrived. Default 30s; never longer than the timeout of the job. */
  readonly timeout?: Duration;
  /** How many redirects are followed. Default 0. */
  readonly redirects?: number;
  /** The statuses after which the call is tried again. Default: 408, 425, 429 and 500 to 599. */
  readonly retryStatuses?: readonly number[];
}

/** A reference to a secret of the tenant, which a worker replaces at the last moment. */
export interface SecretReference {
  readonly $secret: string;
  /** Text before the value, such as `Bearer `. */
  readonly prefix?: string;
}

/** An uploaded binary or a command. */
export interface ExecTarget {
  readonly type: 'exec';
  /** An uploaded binary: its id, `name@version`, or a name for its newest version. */
  readonly artifact?: string;
  /** How long the job waits, from when it is due, for an artifact that is not uploaded yet. Default: `PUNCTUAL_ARTIFACT_TIMEOUT`, 1h. */
  readonly artifactTimeout?: Duration;
  /** A program of the worker's machine, in place of an artifact; only where the operator allows it. */
  readonly command?: string;
  readonly args?: readonly string[];
  /** Values may refer to secrets of the tenant. */
  readonly env?: Readonly<Record<string, string | SecretReference>>;
  /** What the program may use. Workers have bounds of their own; the lower one counts. */
  readonly limits?: ExecLimits;
  /** How far the program is kept apart from the worker's machine. The stricter of this and what the worker asks for counts. */
  readonly isolation?: Isolation;
}

/** How programs are kept apart: not at all, as far as the machine can, or run only if it can. */
export const ISOLATIONS = ['none', 'auto', 'required'] as const;
/** How programs are kept apart. */
export type Isolation = (typeof ISOLATIONS)[number];

/** What a program may use. Sizes are in bytes. */
export interface ExecLimits {
  /** The time on a processor. */
  readonly cpuTime?: Duration;
  /** The share of processors: 0.5 is half of one. */
  readonly cpus?: number;
  readonly memory?: number;
  /** Files that are open at the same time, in each process. */
  readonly files?: number;
  /** Processes and threads at the same time. */
  readonly processes?: number;
  /** Bytes of stdout and stderr that are kept; what is more is read and dropped. */
  readonly output?: number;
  /** Bytes in the job's folder. */
  readonly disk?: number;
}

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

/** Why a job ended as it did. */
export interface EndError extends JobError {
  /** With the code DUPLICATE_KEY, the id of the job that has the key. */
  readonly job?: string;
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
  /** How it ran a program: its isolation, its limits and how it ended. Missing if it ran none, and while it runs. */
  readonly execution?: Execution;
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
  readonly error: EndError | null;
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
  /** The name of the step of that workflow that it is. */
  readonly step: string | null;
  /** What the step waits for besides steps: an event, a time or a workflow; null if it does not. */
  readonly waitsFor: StepWait | null;
  readonly batch: string | null;
  /** Counts every attempt, also lost ones and those before the job was run again. */
  readonly attempt: number;
  /** The failed attempts that count against `maxAttempts`. */
  readonly failures: number;
  readonly maxAttempts: number;
  readonly retry: RetryInput;
  readonly timeout: string;
  readonly delivery: Delivery;
  readonly concurrencyKey: string | null;
  readonly requires: Labels;
  readonly fence: number;
  readonly worker: string | null;
  readonly startedAt: string | null;
  /** When the worker handed the running attempt on; whoever has it reports its end with its token. */
  readonly handedOnAt: string | null;
  /** When somebody asked to cancel the attempt that runs; its worker has been told to stop. */
  readonly cancelRequestedAt: string | null;
  readonly finishedAt: string | null;
  /** Milliseconds between the due time and the start of the first attempt; null before that. */
  readonly lateBy: number | null;
  readonly progress: Progress | null;
  /** The steps that it waits for. */
  readonly dependsOn: readonly string[];
  /** The steps that wait for it. */
  readonly dependents: readonly string[];
  /** All steps before it, the nearest first. */
  readonly ancestors: readonly string[];
  /** All steps behind it, the nearest first. */
  readonly descendants: readonly string[];
  /** Those of these lists that hold only the first thousand. Missing when all are whole. */
  readonly relativesCut?: readonly RelativeList[];
  readonly attempts: readonly Attempt[];
  /** The parts that are left out because they are large; of `attempts` only the oldest are. Missing when none is. */
  readonly omitted?: readonly JobPart[];
}

/** The lists of steps around a job that is a step of a workflow. */
export const RELATIVE_LISTS = ['dependsOn', 'dependents', 'ancestors', 'descendants'] as const;
/** A list of steps around a job. */
export type RelativeList = (typeof RELATIVE_LISTS)[number];

/** A job as the answer to its submission shows it. */
export interface SubmittedJob extends Job, Repetition {}

/** The parts of a job that lists leave out when they are large, unless they are asked for. */
export const JOB_PARTS = ['payload', 'result', 'stack', 'attempts'] as const;
/** A part of a job that a list may leave out. */
export type JobPart = (typeof JOB_PARTS)[number];

/** A job in a list. */
export interface ListedJob
  extends Omit<Job, 'payload' | 'result' | RelativeList>,
    Partial<Pick<Job, RelativeList>> {
  readonly payload?: unknown;
  readonly result?: unknown;
}

/** What a submission and a schedule both say about their jobs. */
export interface JobTemplate {
  /** The task to run; instead of `target`. */
  readonly task?: string;
  readonly target?: Target;
  readonly payload?: unknown;
  /** Default `default`. */
  readonly queue?: string;
  /** 1 … 9, 9 first; default 5. */
  readonly priority?: number;
  readonly retry?: RetryInput;
  /** How long an attempt may run. */
  readonly timeout?: Duration;
  readonly delivery?: Delivery;
  readonly concurrencyKey?: string;
  /** Labels a worker must have. */
  readonly requires?: Labels;
}

/** What a client sends to have a job run. */
export interface JobSubmission extends JobTemplate {
  /** When it is due (RFC 3339); neither this nor `delay` means now. */
  readonly runAt?: string;
  readonly delay?: Duration;
  /** A second submission with the same key gets the same job. */
  readonly key?: string;
  /** What the same key means; default `keep`. */
  readonly keyMode?: KeyMode;
  /** The window of `debounce` and `throttle`, e.g. `5m`. */
  readonly keyWindow?: Duration;
  /** The job fails if it has not started by this time (RFC 3339). */
  readonly startBefore?: string;
  /** Whether it waits until it is released. */
  readonly hold?: boolean;
}

/** The retry part of a submission; what is left out takes its default. */
export interface RetryInput {
  /** How many attempts may fail, the first one included; default 4. */
  readonly maxAttempts?: number;
  /** The pause before the next attempt: `base`, times `factor` after each further failure, up to `max`. */
  readonly backoff?: {
    readonly base?: Duration;
    readonly factor?: number;
    readonly max?: Duration;
    /** The part of the pause, from 0 to 1, by which it is varied at random. */
    readonly jitter?: number;
  };
  /** Attempts whose worker died are counted apart; default 3. */
  readonly onWorkerLost?: { readonly maxAttempts?: number };
}

/** Whether a job in this state has ended. */
export function isEnded(state: JobState): state is EndState {
  return (END_STATES as readonly string[]).includes(state);
}
