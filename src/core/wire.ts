import type { ArtifactKind } from './artifact.js';
import type { Execution } from './execution.js';
import type { JobError, JobState, Labels, ListedJob, Target, TargetType } from './job.js';
import type { Quotas } from './quotas.js';
import type { RateView } from './rate.js';
import type { ScheduleDefinition, ScheduleTimes } from './schedule.js';
import type { TaskDefinition } from './task-definition.js';

/** The messages between workers, nodes and clients. Shapes are those of the public contract. */

/** The header by which workers and nodes say which shard a request is about; without it, shard 0. */
export const SHARD_HEADER = 'punctual-shard';

/** Among the queues of a worker: every queue there is or will be. */
export const ALL_QUEUES = '*';

/** A job of a bulk whose key had a job already. */
export interface BulkRepetition {
  /** Its place in the bulk. */
  readonly index: number;
  /** Whether the job with that key took what it says. */
  readonly replaced: boolean;
  /** The fields in which it differed from that job. */
  readonly differs: readonly string[];
}

/** The answer to a bulk. */
export interface BulkAnswer {
  /** In the order of the jobs. */
  readonly ids: readonly string[];
  readonly repetitions: readonly BulkRepetition[];
}

export interface WorkerRegistration {
  readonly name: string;
  readonly queues: readonly string[];
  readonly slots: number;
  readonly targets: readonly TargetType[];
  /** Handlers the worker has; empty for a worker without handlers. */
  readonly tasks: readonly string[];
  readonly labels: Labels;
  /** How often this worker starts a job at most. */
  readonly rate?: RateView;
  /** Whether it serves all tenants; only an operator's worker may. */
  readonly shared?: boolean;
  /** False when its assignments need no tokens, because it reports about them under its own key. */
  readonly tokens?: boolean;
  /** The id of this worker's previous session, which thereby ends. */
  readonly replaces?: string;
  /** What the worker runs, to be shown: of this package, its version. */
  readonly version?: string;
}

/** A session of a worker: its id, and the shard whose leader knows it. */
export interface SessionKey {
  readonly workerId: string;
  readonly shard: number;
}

export interface WorkerWelcome extends SessionKey {
  readonly epoch: number;
  readonly heartbeatInterval: string;
  readonly workerTimeout: string;
  /** The server's time, so that a worker can report moments on the database's clock. */
  readonly now: string;
}

export interface FencedJob {
  readonly jobId: string;
  readonly fence: number;
}

export interface Heartbeat {
  /** The highest epoch the worker has seen of this shard. */
  readonly epoch: number;
  /** Everything received whose report is not yet answered. */
  readonly running: readonly FencedJob[];
  /** Attempts that a `stop` named which never arrived here, and which this worker now never starts. */
  readonly refused?: readonly FencedJob[];
}

/** What a worker says when it leaves. */
export interface Leave {
  /**
   * Whether everything it received is reported and it starts nothing more. What was handed over and never arrived then
   * waits again; without this word it counts as lost.
   */
  readonly settled?: boolean;
}

export interface HeartbeatAnswer {
  readonly epoch: number;
  readonly stop: readonly FencedJob[];
  readonly drain: boolean;
  readonly now: string;
}

export interface ClaimRequest {
  readonly max: number;
  readonly wait: string;
}

export interface ClaimAnswer {
  readonly epoch: number;
  readonly jobs: readonly Assignment[];
  /** Attempts to stop, as in the answer to a heartbeat: a cancel need not wait for the next one. */
  readonly stop?: readonly FencedJob[];
}

/** One attempt handed to a worker. */
export interface Assignment {
  readonly jobId: string;
  /** Whose job it is; a worker may serve several tenants. */
  readonly tenant: string;
  readonly task: string | null;
  readonly queue: string;
  readonly target: Target;
  readonly payload: unknown;
  /** For http and exec targets, the payload as it was submitted, if it holds numbers that JavaScript would not read exactly. */
  readonly payloadText?: string;
  readonly attempt: number;
  readonly fence: number;
  readonly epoch: number;
  readonly timeoutMs: number;
  /** Opens the routes that report about this attempt; missing when the worker wanted none. */
  readonly token?: string;
  /** The workflow that the job is a step of; missing for other jobs. */
  readonly workflow?: string;
  /** The context of the trace that the submission was part of. */
  readonly traceparent?: string;
  /** When the attempt was due (RFC 3339); only with `traceparent` and for http and exec targets. */
  readonly dueAt?: string;
  /**
   * For the receiver of an http call, or a program: opens the routes that report about this attempt and nothing else. The
   * worker's own token never leaves the worker.
   */
  readonly receiverToken?: string;
  /** Set only for http and exec targets that must start at most once. */
  readonly delivery?: 'at-most-once';
}

/** What every result says about its attempt. */
export interface AttemptFacts {
  /** Whose job it was, from a worker that serves several tenants. */
  readonly tenant?: string;
  /** When the attempt started, on the database's clock as the worker estimates it (RFC 3339). */
  readonly startedAt?: string;
  /** How it ran a program. */
  readonly execution?: Execution;
}

export type AttemptResult = FencedJob &
  AttemptFacts &
  (
    | { readonly outcome: 'succeeded'; readonly result?: unknown }
    | {
        readonly outcome: 'failed';
        readonly error: JobError;
        readonly retryable?: boolean;
        /** Milliseconds before which the next attempt must not start; a longer backoff stays. */
        readonly retryAfterMs?: number;
        /** What a failed call says about the origin that it went to. */
        readonly origin?: OriginReport;
      }
    | { readonly outcome: 'timed-out'; readonly error?: JobError }
    | { readonly outcome: 'cancelled'; readonly error?: JobError }
    /** The attempt goes on without a worker: whoever has its token, or a key, will report its end. */
    | { readonly outcome: 'handed-on' }
  );

/** What a failed call says about the origin that it went to. */
export interface OriginReport {
  /** The origin asked for a pause: no call to it starts before. */
  readonly pauseMs?: number;
  /** Whether the failure counts against the origin's circuit: it gave no answer, or one that says that it is in trouble. */
  readonly isDown?: boolean;
  /** Whether it answered 410: a schedule that calls it is paused. */
  readonly isGone?: boolean;
}

/** The longest pause that an origin may ask for. */
export const MAX_ORIGIN_PAUSE_MS = 3_600_000;

/** The longest pause that a failed attempt may ask for. */
export const MAX_RETRY_AFTER_MS = 86_400_000;

export interface ReportRequest {
  readonly results: readonly AttemptResult[];
}

export interface ReportAnswer {
  readonly epoch: number;
  readonly accepted: readonly string[];
  readonly stale: readonly string[];
}

/** Which secrets a worker needs for the call of an attempt that it holds. */
export interface SecretsRequest extends FencedJob {
  /** The attempt's own token; missing only for workers in the process of a node. */
  readonly token?: string;
  /** Names that the target of the job refers to. */
  readonly names: readonly string[];
}

/** Secrets for one call, which a worker forgets after it. */
export interface SecretsAnswer {
  /** The values by name. */
  readonly values: Readonly<Record<string, string>>;
  /** The secrets with which to sign the call, the newest first; none where nodes have no master key. */
  readonly signing: readonly string[];
}

/** Asks for the artifact that an attempt runs. */
export interface ArtifactRequest extends FencedJob {
  /** The attempt's own token; missing only for workers in the process of a node. */
  readonly token?: string;
}

/** What a worker is given to run. */
export interface ArtifactAnswer {
  readonly id: string;
  readonly sha256: string;
  readonly size: number;
  readonly kind: ArtifactKind;
  /** The processor that a program is made for. */
  readonly machine: string | null;
  /** Where the bytes can be read with GET, also a range of them, without a key. */
  readonly url: string;
  /** To be sent exactly so. */
  readonly headers: Readonly<Record<string, string>>;
  readonly expiresAt: string;
}

export interface ProgressReport {
  readonly fence: number;
  readonly progress: number;
  readonly message?: string;
}

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface LogLine {
  readonly at: string;
  readonly level: LogLevel;
  readonly message: string;
}

export interface LogReport {
  readonly fence: number;
  readonly lines: readonly LogLine[];
}

/** A line of a job's log as it is read back. */
export interface StoredLogLine extends LogLine {
  readonly fence: number;
}

export type WorkerState = 'alive' | 'draining' | 'dead';

export interface WorkerView {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly state: WorkerState;
  readonly queues: readonly string[];
  readonly targets: readonly TargetType[];
  readonly tasks: readonly string[];
  readonly labels: Labels;
  readonly slots: number;
  readonly rate: RateView | null;
  /** Whether it serves all tenants. */
  readonly shared: boolean;
  readonly running: number;
  /** Null if the worker has not said it. */
  readonly version: string | null;
  readonly registeredAt: string;
  readonly lastSeen: string;
}

export interface QueueView {
  readonly name: string;
  readonly paused: boolean;
  /** Jobs that could start now or are held back by a limit only; exact up to the size of the backlog. */
  readonly ready: number;
  readonly upcoming: number;
  readonly running: number;
  /** Whether more jobs wait in the table than the figures above count. */
  readonly more: boolean;
  /** Its share beside the tenant's other queues. */
  readonly weight: number;
  /** Jobs that run at the same time at most; null is no limit. */
  readonly concurrency: number | null;
  /** Jobs of one concurrency key that run at the same time at most. */
  readonly keyConcurrency: number;
  readonly rate: RateView | null;
  /** How long the job that starts next has been due, in milliseconds; of several kinds of jobs, the longest. */
  readonly oldestReadyMs: number | null;
  readonly createdAt: string;
}

export interface TenantView {
  readonly id: string;
  readonly name: string;
  readonly shard: number;
  /** Its share of shared workers beside other tenants. */
  readonly weight: number;
  readonly rate: RateView | null;
  readonly quotas: Quotas;
  readonly createdAt: string;
}

/** Whether a node has given a sign of life lately. */
export type NodeState = 'alive' | 'dead';

export interface ClusterView {
  /** Whether every shard has a leader. */
  readonly ok: boolean;
  readonly shards: readonly {
    readonly id: number;
    readonly leader: string | null;
    readonly epoch: number;
    readonly expiresAt: string;
    readonly terms: number;
  }[];
  readonly nodes: readonly {
    readonly id: string;
    readonly url: string;
    /** Dead once several signs of life are missing. */
    readonly state: NodeState;
    readonly leads: readonly number[];
    readonly lastSeen: string;
    readonly version: string;
  }[];
  readonly paused: boolean;
}

/** What a job that is not running waits for. */
export type Gate =
  | 'parents'
  | 'event'
  | 'workflow'
  | 'artifact'
  | 'due-time'
  | 'hold'
  | 'cluster-paused'
  | 'queue-paused'
  | 'no-fitting-worker'
  | 'no-free-slot'
  | 'limit'
  | 'rate'
  | 'origin'
  | 'share'
  | 'behind-others'
  | 'not-admitted'
  | 'being-claimed'
  | 'batch'
  | 'not-waiting';

export interface Why {
  readonly jobId: string;
  readonly state: string;
  readonly gate: Gate;
  /** One sentence for people. */
  readonly detail: string;
  /** The figures behind it, e.g. `{"dueInMs": 1200}`. */
  readonly figures: Readonly<Record<string, number | string | boolean | null>>;
}

/** An origin that http targets of a tenant call, as the leader knows it. */
export interface OriginView {
  /** Scheme, host and port, such as `https://example.com`, or a bucket that many origins share, such as `bucket:17`. */
  readonly origin: string;
  readonly state: 'closed' | 'open' | 'probing' | 'paused';
  /** Until when no call starts, if that is known. */
  readonly until: string | null;
  readonly consecutiveFailures: number;
  /** Calls that are out. */
  readonly running: number;
  /** Due jobs that wait for it in the leader's memory. */
  readonly waiting: number;
  /** Calls that run at the same time at most; null is no limit. */
  readonly concurrency: number | null;
  readonly rate: RateView | null;
  /** Null if the leader has seen no call end. */
  readonly latency: OriginLatency | null;
}

/** How long the newest calls to an origin took, answered or not. */
export interface OriginLatency {
  /** How many these are, at most a hundred. */
  readonly calls: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Ready jobs of one queue with the same needs, which no live worker has served for a while. */
export interface UnservedView {
  readonly queue: string;
  readonly target: string;
  /** The handler that is wanted; null for other targets. */
  readonly task: string | null;
  readonly requires: Labels;
  /** The due jobs that the leader has in memory. */
  readonly ready: number;
  /** Since when there has been no worker, as far as this leader knows. */
  readonly since: string;
  /** One sentence for people. */
  readonly detail: string;
}

/** A job of a schedule, and how it fares. */
export interface LastJob {
  readonly id: string;
  readonly state: JobState;
  /** The code of its error; null when it has none. */
  readonly errorCode: string | null;
}

/** A schedule as the API shows it: its definition with every default, and where it stands. */
export interface ScheduleView extends ScheduleDefinition {
  readonly id: string;
  readonly tenant: string;
  readonly name: string;
  readonly paused: boolean;
  /** The next occurrence; null when none comes, or while it is paused. */
  readonly nextAt: string | null;
  /** The program that created it from its code; null when it was made in another way. */
  readonly managedBy: string | null;
  /** The newest occurrence that was due, and its job if it got one. */
  readonly lastAt: string | null;
  readonly lastJobId: string | null;
  /** The workflow, or the batch, of that occurrence; missing for schedules that run neither. */
  readonly lastWorkflowId?: string;
  readonly lastBatchId?: string;
  /** How the job of `lastAt`, or else its newest one, fares; null when there is none or its history was removed, missing in lists. */
  readonly lastJob?: LastJob | null;
  readonly createdAt: string;
  readonly createdBy: string;
  readonly changedAt: string;
  readonly changedBy: string;
  readonly version: number;
}

/** A schedule in a list: a large payload is left out unless it is asked for. */
export interface ListedSchedule extends Omit<ScheduleView, 'lastJob'> {
  /** Missing when nothing is left out. */
  readonly omitted?: readonly 'payload'[];
}

/** What a client sends to make a schedule. */
export interface ScheduleInput extends ScheduleDefinition {
  readonly name: string;
  readonly paused?: boolean;
}

/** The schedules that the code of a program says. */
export interface ScheduleSet {
  /** The name of the program. */
  readonly managedBy: string;
  readonly schedules: readonly ScheduleInput[];
  /** Whether to remove the schedules of this program that are not in the set. */
  readonly prune?: boolean;
  /** Whether only to tell what would be done. */
  readonly dryRun?: boolean;
}

/** What was done, or with `dryRun` would be, so that the schedules are as the code says. */
export interface AppliedSchedules {
  readonly created: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
  /** How many were as they should be. */
  readonly unchanged: number;
  /** Whether there are more to remove than one call does. */
  readonly more: boolean;
  readonly dryRun: boolean;
}

export const OCCURRENCE_STATES = ['ran', 'late', 'skipped', 'missed', 'pending'] as const;
/** `pending` is an occurrence that has its job, or waits for the one before, and has not started. */
export type OccurrenceState = (typeof OCCURRENCE_STATES)[number];

/** A row of the ledger; `count` and `until` where consecutive occurrences were passed over together. */
export interface OccurrenceView {
  readonly at: string;
  readonly state: OccurrenceState;
  /** Its job; of a workflow or batch, the first of its jobs. */
  readonly jobId?: string;
  readonly workflowId?: string;
  readonly batchId?: string;
  /** Milliseconds between due time and start. */
  readonly lateBy?: number;
  readonly reason?: string;
  readonly count?: number;
  readonly until?: string;
}

/** Which moments a schedule would come to. */
export interface PreviewRequest extends ScheduleTimes {
  readonly from?: string;
  readonly count?: number;
}

export interface PreviewAnswer {
  readonly data: readonly { readonly at: string; readonly note?: string }[];
}

/** Which past time to fill; with `dryRun` the answer only says what would run. */
export interface BackfillRequest {
  readonly from: string;
  readonly to: string;
  readonly dryRun?: boolean;
}

export interface BackfillAnswer {
  /** Occurrences of the time without a run on record. */
  readonly matched: number;
  /** How many of them run now. */
  readonly started: number;
  readonly dryRun: boolean;
  readonly occurrences: readonly string[];
}

export const COUNTERS = [
  'leaderElections',
  'jobsSubmitted',
  'jobsAssigned',
  'jobsCompleted',
  'jobsFailed',
  'jobsCancelled',
  'jobsRetried',
  'jobsRequeued',
  'staleCompletions',
  'staleFailures',
  'occurrencesLate',
  'occurrencesMissed',
  'workflowsSubmitted',
  'workflowsRetried',
  'workflowsSucceeded',
  'workflowsFailed',
  'workflowsCancelled',
  'stepsSkipped',
  'batchesSubmitted',
  'batchesStarted',
  'batchesSucceeded',
  'batchesFailed',
  'batchesCancelled',
  'batchesTimedOut',
] as const;
export type Counter = (typeof COUNTERS)[number];
export type Counts = Readonly<Record<Counter, number>>;

export interface LatenessView {
  readonly count: number;
  readonly p50Ms: number | null;
  readonly p90Ms: number | null;
  readonly p99Ms: number | null;
  readonly maxMs: number | null;
}

export interface StatsView extends Counts {
  readonly lateness: LatenessView;
  /** What only the node knows that answered, since its start; operators are told. */
  readonly node?: { readonly id: string; readonly loopDelay: LatenessView };
  readonly history?: readonly (Counts & { readonly minute: string; readonly lateness: LatenessView })[];
}

export interface Page<T> {
  readonly data: readonly T[];
  readonly next: string | null;
}

/** One page of the list of jobs. */
export interface JobPage extends Page<ListedJob> {
  /** How many jobs were looked at for it. */
  readonly scanned: number;
  /** False if the search stopped at its bound before the page was full; more jobs may follow all the same. */
  readonly complete: boolean;
}

/** The most ids that one change of many jobs names. */
export const MAX_IDS = 1_000;

/** The most jobs that one call changes; the caller repeats it for the rest. */
export const MAX_PART = 10_000;

/** What can be done to many jobs at once; `redrive` runs them again. */
export const MANY_VERBS = ['cancel', 'hold', 'release', 'redrive', 'delete'] as const;
export type ManyVerb = (typeof MANY_VERBS)[number];

/** Which jobs: those to which everything applies that is given. */
export interface JobFilter {
  /** One or more states, with commas between them. */
  readonly state?: string;
  readonly task?: string;
  readonly queue?: string;
  readonly key?: string;
  /** How the key begins that the job has. */
  readonly keyPrefix?: string;
  /** The id of the worker that runs or ran the job. */
  readonly worker?: string;
  readonly schedule?: string;
  /** The id of the workflow that the job is a step of. */
  readonly workflow?: string;
  /** The batch that a job is a member of. */
  readonly batch?: string;
  /** Created at this moment or later; a moment (RFC 3339) or a duration, which means so long ago. */
  readonly since?: string;
  /** Created before this moment. */
  readonly until?: string;
  readonly errorCode?: string;
  /** Failed jobs of this group of `GET /v1/errors`. */
  readonly fingerprint?: string;
  /** At least so many attempts, with the one that runs. */
  readonly minAttempts?: number;
  /** At most so many attempts. */
  readonly maxAttempts?: number;
  /** Fields of the payload by their paths, such as `items.0.sku`, each with the value that it must have. */
  readonly payload?: Readonly<Record<string, string | number | boolean | null>>;
}

/** Failed jobs that have failed alike. */
export interface ErrorGroupView {
  /** For the filter `fingerprint` of lists and of changes of many jobs. */
  readonly fingerprint: string;
  readonly task: string | null;
  readonly code: string | null;
  /** The first line of the message, with `#` for whatever has a digit in it. */
  readonly message: string;
  readonly count: number;
  readonly firstSeen: string;
  readonly lastSeen: string;
  /** The job that failed last. */
  readonly exampleJobId: string;
  /** Failed jobs per interval, the oldest interval first. */
  readonly counts: readonly number[];
}

/** Groups of errors, the most frequent first. */
export interface ErrorGroupsView {
  readonly data: readonly ErrorGroupView[];
  readonly next: null;
  readonly from: string;
  readonly to: string;
  readonly intervalMs: number;
  /** How many failed jobs were grouped. */
  readonly examined: number;
  /** Whether these are all failed jobs of the time; else they are the newest 10,000 by submission. */
  readonly complete: boolean;
}

/** What becomes due in one minute. */
export interface ForecastMinute {
  readonly at: string;
  /** Jobs that were submitted and become due in this minute. */
  readonly jobs: number;
  /** Occurrences of schedules; each starts a job, a workflow or a batch. */
  readonly occurrences: number;
  /** Whether the minute has far more to do than the others. */
  readonly herd: boolean;
  /** Slots that can do it within the minute. */
  readonly slotsWanted: number | null;
}

/** What becomes due in the minutes ahead. */
export interface ForecastView {
  readonly data: readonly ForecastMinute[];
  readonly next: null;
  /** How long attempts took on average since the leader began; null if none has ended. */
  readonly averageRunMs: number | null;
  /** Slots of the live workers. */
  readonly slots: number | null;
  /** Slots that can do the most busy minute. */
  readonly slotsWanted: number | null;
  /** The schedules that are due next, also beyond these minutes, the first of them first; at most ten. */
  readonly soonest: readonly { readonly tenant: string; readonly schedule: string; readonly at: string }[];
  /** Whether everything was counted; else there is more than shown. */
  readonly complete: boolean;
}

/** What a queue did in one minute. */
export interface QueueMinuteView {
  readonly minute: string;
  /** Attempts that ended. */
  readonly ended: number;
  /** Due jobs at the end of the minute, as far as the leader had them in memory. */
  readonly ready: number;
  /** How long the one that starts next had been due. */
  readonly oldestReadyMs: number;
}

/** What a queue did, by the minute, oldest first. */
export interface QueueHistoryView {
  readonly queue: string;
  readonly data: readonly QueueMinuteView[];
  readonly next: null;
}

/** What live jobs wait for, as far as the leader has them in memory; the most frequent reason first. */
export interface WaitingView {
  readonly data: readonly {
    /** The gate, as `why` names it. */
    readonly reason: Gate;
    readonly jobs: number;
    readonly oldestReadyMs: number;
    /** The queues with the most such jobs. */
    readonly queues: readonly { readonly queue: string; readonly jobs: number }[];
  }[];
  readonly next: null;
  /** Jobs that do not wait, but run. */
  readonly running: number;
  /** Whether the leader has all live jobs in memory; else there are more. */
  readonly complete: boolean;
  /** Jobs that are not live, of more than ten thousand the newest; only where they are asked for. */
  readonly later?: {
    readonly held: number;
    /** Steps that wait for others, for an event or a time, and members of batches that wait. */
    readonly blocked: number;
    /** Jobs that are not due for long. */
    readonly notDue: number;
    /** Whether all of them were counted. */
    readonly complete: boolean;
  };
}

/** Which jobs to change, and from where to go on. */
export interface ManyJobsRequest {
  readonly filter?: JobFilter;
  readonly ids?: readonly string[];
  /** Every job that can be changed in this way. */
  readonly all?: boolean;
  /** Only counts the jobs. */
  readonly dryRun?: boolean;
  readonly after?: string;
  /** Changes about so many jobs in this call at most. */
  readonly limit?: number;
}

/** A job that was not changed, and why. */
export interface RefusedJob {
  readonly id: string;
  readonly code: string;
  readonly detail: string;
}

export interface ManyJobsAnswer {
  /** Jobs that matched in this part of the work; with `more`, at least so many in all. */
  readonly matched: number;
  readonly changed: number;
  readonly dryRun: boolean;
  /** Whether more jobs may match. */
  readonly more: boolean;
  /** The `after` with which to go on; null when all is done. */
  readonly next: string | null;
  /** Jobs of `ids` that cannot be changed, and jobs whose change failed. */
  readonly refused: readonly RefusedJob[];
}

export interface RedriveAnswer extends ManyJobsAnswer {
  /** The same number as `changed`. */
  readonly redriven: number;
}

/** Ids that begin alike. */
export interface MatchingIds {
  readonly ids: readonly string[];
  /** Whether there are, or may be, more. */
  readonly more: boolean;
}

/** What defines a task: its name and what its jobs take. */
export interface TaskInput extends TaskDefinition {
  readonly name: string;
  /** The worker that publishes what its code says; it does not replace what people have defined. */
  readonly publishedBy?: string;
  /** Whether a publication replaces what people have defined, too. */
  readonly overwrite?: boolean;
}

/** A task as the API shows it. */
export interface TaskView extends TaskDefinition {
  readonly tenant: string;
  readonly name: string;
  /** The worker that published it; null when a person defined it. */
  readonly publishedBy: string | null;
  readonly createdAt: string;
  readonly createdBy: string;
  readonly changedAt: string;
  readonly changedBy: string;
  readonly version: number;
}
