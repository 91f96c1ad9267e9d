import type { BatchState, OnMemberFailure } from '../../src/core/batch.js';
import type { AttemptOutcome, JobState } from '../../src/core/job.js';
import type { FailurePolicy, RunIf, RunningPolicy, WorkflowState } from '../../src/core/workflow.js';

/**
 * What the observers of a run saw, and nothing that the scheduler says about itself except the tables it leaves
 * behind. All times are milliseconds of the machine's monotonic clock, moments of the database included.
 */
export interface History {
  readonly scenario: string;
  readonly seed: number;
  readonly settings: Settings;
  readonly submissions: readonly Submission[];
  readonly effects: readonly Effect[];
  readonly faults: readonly FaultRecord[];
  readonly audit: readonly AuditEntry[];
  readonly jobs: readonly JobRecord[];
  readonly answers: readonly ReportAnswer[];
  readonly probes: readonly StaleProbe[];
  readonly leases: readonly LeaseSighting[];
  readonly deaths: readonly Death[];
  readonly memory: readonly MemoryPeak[];
  /** Programs that still ran when every job had ended. */
  readonly orphans: readonly string[];
  readonly load: LoadRecord;
  readonly schedules: readonly ScheduleRecord[];
  readonly workflows: readonly WorkflowRecord[];
  readonly batches: readonly BatchRecord[];
  readonly callReports: readonly CallReport[];
  readonly aftermath: Aftermath;
}

/** The timings and sizes of a run. */
export interface Settings {
  readonly leaseTtlMs: number;
  readonly heartbeatMs: number;
  readonly workerTimeoutMs: number;
  readonly nodes: number;
  readonly workers: number;
  readonly slots: number;
  readonly jobsPerSecond: number;
  /** Beside the jobs; 0 if the run has none. */
  readonly workflowsPerSecond: number;
  readonly batchesPerSecond: number;
  readonly callsPerSecond: number;
  readonly programsPerSecond: number;
}

/** What a job of the load is asked to do. */
export interface Order {
  /** Its number, by which every observer knows it. */
  readonly n: number;
  /** How long the handler takes. */
  readonly workMs: number;
  /** How many attempts throw before one succeeds. */
  readonly failures: number;
  /** Whether the handler holds the thread for that time instead of waiting. */
  readonly blocking: boolean;
  readonly maxAttempts: number;
  readonly atMostOnce: boolean;
  readonly timeoutMs: number;
  readonly delayMs: number;
  readonly key: string | null;
  readonly tenant: string;
  readonly queue: string;
  /** The labels that its worker must have. */
  readonly requires: Readonly<Record<string, string>>;
  /** Whether any worker has them; a job that nobody can run is cancelled by whoever ordered it. */
  readonly servable: boolean;
  /** How much its payload and its result weigh beyond the few fields that the handler needs. */
  readonly bytes: number;
  /** Whether others decide when it starts: the steps before it, or the other members. */
  readonly partOf: 'workflow' | 'batch' | null;
  /** The call that it makes; null if a handler does its work. */
  readonly call: CallOrder | null;
  /** The program that does its work, and where that writes its effects; null if it is none. */
  readonly program: { readonly folder: string } | null;
}

/** How the sink treats a call that is to fail: 503, 429, a reset of the connection, or no answer. */
export type FailedCall = 'error' | 'busy' | 'reset' | 'lost';

/** What a job with an http target asks of the sink. */
export interface CallOrder {
  readonly origin: string;
  /** What becomes of the attempts that are to fail. */
  readonly failing: FailedCall;
  /** Whether the sink answers 202, and reports when its work is done. */
  readonly handsOn: boolean;
  /** How long one call may take. */
  readonly timeoutMs: number;
}

/** One request of the client, with all its jobs: stored as a whole or not at all. */
export interface Submission {
  readonly orders: readonly Order[];
  readonly sentAt: number;
  readonly answeredAt: number;
  /** `unknown` when no answer said whether the jobs were stored. */
  readonly outcome: 'ok' | 'refused' | 'unknown';
  /** What a node answered that refused it; nothing if no node was reached. */
  readonly refusal?: string;
  /** In the order of the jobs; empty unless ok. */
  readonly ids: readonly string[];
}

/** A start or an end of a handler, written by the handler itself, or of a call, written by the sink. */
export interface Effect {
  readonly kind: 'start' | 'end';
  readonly job: string;
  readonly n: number;
  readonly fence: number;
  /** The process that ran it, or made the call: slot and incarnation, such as `w2.3`. */
  readonly worker: string;
  /** Whose worker that is. */
  readonly tenant: string;
  readonly at: number;
  /**
   * Of an end: whether the handler returned, threw, or was told to stop. The sink has returned when it gave a good answer, and
   * thrown when it gave a bad one or none.
   */
  readonly result: 'returned' | 'threw' | 'stopped' | null;
  /** Of a step that refers to the result of another: the number of that one's order, as the payload told it. */
  readonly from: number | null;
  /** Whether a program wrote it. */
  readonly program?: true;
}

/** One injected fault, from the first touch to the last of the repair. */
export interface FaultRecord {
  readonly kind: string;
  readonly from: number;
  readonly to: number;
  /** What was hit: nodes, workers, the sink or `postgres`. */
  readonly targets: readonly string[];
  /** Whether an observer saw it take effect. */
  readonly effective: boolean;
  readonly detail: string;
  /** Of a fault that should end a term: the epoch before, and the moment from which nobody led. */
  readonly leaderGone?: LeaderGone;
  /**
   * The part of the time in which something was broken; all of it if not said, and null for a fault that is nothing but
   * load. Only what is broken excuses a late start or a lost term.
   */
  readonly broken?: Span | null;
  /** Of a fault that restored an older copy of the database. */
  readonly restored?: Restored;
  /** Of a fault that held the thread of a worker: that worker, which then begins nothing although it is alive. */
  readonly held?: string;
  /** Of a fault that set the database's clock back: while it lasted, and a queue with a rate that had work all the time. */
  readonly clockBack?: ClockBack;
}

export interface Span {
  readonly from: number;
  readonly to: number;
}

export interface LeaderGone {
  readonly epoch: number;
  readonly at: number;
  /** Within which time something must have started under a new leader, if the fault promises one. */
  readonly withinMs?: number;
}

/** What was lost with the newer database: everything from the copy until the server was taken down. */
export interface Restored {
  readonly copiedAt: number;
  /** From here on only the copy can be seen. */
  readonly downAt: number;
  /** When the copy was open to all nodes. */
  readonly at: number;
  /** The writes that the copy does not have. */
  readonly lost: readonly AuditEntry[];
}

export interface ClockBack extends Span {
  readonly queue: string;
  readonly perSecond: number;
  readonly burst: number;
}

/** A write as the database itself recorded it, in the order that the fence imposes. */
export interface AuditEntry {
  readonly seq: number;
  /** Writes with the same number are of one transaction. */
  readonly tx: number;
  /** `over` is the end of a workflow or a batch. */
  readonly kind: 'claimed' | 'handed-on' | 'freed' | 'ended' | 'over' | 'term';
  /** The job, or what is over. */
  readonly job: string | null;
  readonly fence: number | null;
  readonly epoch: number;
  /** The node that wrote. */
  readonly writer: string;
  readonly at: number;
}

/** An attempt as the table holds it. */
export interface AttemptRecord {
  readonly fence: number;
  readonly epoch: number;
  readonly outcome: AttemptOutcome;
}

/** A job as the tables hold it at the end of the run. */
export interface JobRecord {
  readonly id: string;
  readonly n: number;
  readonly key: string | null;
  readonly state: JobState;
  readonly runAt: number;
  readonly attempts: readonly AttemptRecord[];
  readonly atMostOnce: boolean;
  /** The result as JSON, or null. */
  readonly result: string | null;
}

/** What a node answered to one result that a worker reported, seen on the way between them. */
export interface ReportAnswer {
  readonly job: string;
  readonly fence: number;
  readonly outcome: AttemptOutcome;
  readonly verdict: 'accepted' | 'stale';
  readonly at: number;
}

/** What a node answered to the receiver of a call that was handed on. */
export interface CallReport {
  readonly job: string;
  readonly fence: number;
  readonly outcome: 'succeeded' | 'failed';
  readonly status: number;
  readonly code: string;
  readonly at: number;
}

/** A result under an old fence that the harness itself reported. */
export interface StaleProbe {
  readonly job: string;
  readonly fence: number;
  readonly status: number;
  readonly code: string;
}

/** The lease as an onlooker saw it. */
export interface LeaseSighting {
  readonly epoch: number;
  readonly holder: string;
  readonly at: number;
}

/** The most memory that a process of a node was seen to use. */
export interface MemoryPeak {
  readonly member: string;
  readonly megabytes: number;
}

/** For how long jobs were ordered. */
export interface LoadRecord {
  readonly seconds: number;
  /** Of that, how long nothing was ordered because too much waited. */
  readonly heldBackSeconds: number;
}

/** A row of the ledger as the table holds it, on the wall clock, which is the database's. */
export interface LedgerRecord {
  readonly at: number;
  readonly state: string;
  readonly reason: string | null;
  readonly job: string | null;
  /** The last of consecutive occurrences that were passed over together. */
  readonly until: number | null;
  readonly count: number;
  readonly recordedAt: number;
}

/** A schedule of the run and what is on record about it, on the wall clock. */
export interface ScheduleRecord {
  readonly name: string;
  readonly everyMs: number;
  readonly overlap: 'allow' | 'skip' | 'queue';
  readonly createdAt: number;
  /** The moment before somebody asked for its end. */
  readonly until: number;
  readonly ledger: readonly LedgerRecord[];
  readonly jobs: readonly { readonly id: string; readonly occurrence: number; readonly state: string }[];
}

/** What became of a request to cancel something. */
export interface CancelRecord {
  readonly sentAt: number;
  readonly answeredAt: number;
  readonly outcome: Submission['outcome'];
}

/** A step of a workflow as it was ordered. */
export interface StepOrder {
  readonly name: string;
  /** The number of its order. */
  readonly n: number;
  readonly after: readonly string[];
  readonly runIf: RunIf;
  /** The step whose result its payload refers to. */
  readonly refersTo: string | null;
}

/** A workflow of the run. */
export interface WorkflowRecord {
  readonly name: string;
  readonly onFailure: FailurePolicy;
  readonly running: RunningPolicy;
  /** Each behind the steps that it waits for. */
  readonly steps: readonly StepOrder[];
  readonly cancel: CancelRecord | null;
  /** As the table holds it at the end; null if it is not there. */
  readonly row: {
    readonly id: string;
    readonly state: WorkflowState;
    readonly stepsLeft: number;
  } | null;
}

/** A batch of the run. */
export interface BatchRecord {
  /** The numbers of the orders of its members. */
  readonly members: readonly number[];
  readonly onFailure: OnMemberFailure;
  readonly startTimeoutMs: number | null;
  readonly cancel: CancelRecord | null;
  /** As the table holds it at the end; null if it is not there. */
  readonly row: {
    readonly id: string;
    readonly state: BatchState;
    /** The code of the error if it never started. */
    readonly error: string | null;
  } | null;
}

/** A process that ended although nobody had told it to. */
export interface Death {
  /** Slot and incarnation, or `postgres`. */
  readonly member: string;
  readonly at: number;
  /** How it ended, and the last lines of its log. */
  readonly detail: string;
}

/** How things stand when all faults have healed and the drain time is over. */
export interface Aftermath {
  /** Nodes that say of themselves that they lead and are named by the lease. */
  readonly leaders: readonly string[];
  readonly liveNodes: readonly string[];
  /** Claims that are left although all work should be done. */
  readonly claims: number;
  /** Jobs started per second before the first fault and after the last one. */
  readonly rateBefore: number;
  readonly rateAfter: number;
}
