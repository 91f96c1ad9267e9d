import type { Job, JobPart, JobState, ListedJob } from '../core/job.js';
import type {
  BackfillAnswer,
  ClaimAnswer,
  ClusterView,
  HeartbeatAnswer,
  ListedSchedule,
  OccurrenceView,
  Page,
  PreviewAnswer,
  QueueView,
  RedriveAnswer,
  ReportAnswer,
  ReportRequest,
  ScheduleView,
  StatsView,
  StoredLogLine,
  TenantView,
  Why,
  WorkerView,
  WorkerWelcome,
} from '../core/wire.js';
import type { Answered } from './json-text.js';

/**
 * What the product can do, independent of how it is asked. HTTP (and later gRPC) are thin layers over this.
 * Bodies arrive as `unknown`: validation happens here, once, for every way in.
 */

/** Who asks, as the credential says. The tenant comes from the credential alone. */
export interface Caller {
  readonly tenant: string;
  /** Recorded as `createdBy`; the name of the key. */
  readonly actor: string;
  readonly operator: boolean;
}

/** What an attempt's token allows: to report about this one job. */
export interface AttemptCredential {
  readonly tenant: string;
  readonly jobId: string;
  readonly fence: number;
}

export interface JobFilter {
  readonly state?: JobState;
  readonly task?: string;
  readonly queue?: string;
  readonly key?: string;
  readonly worker?: string;
  readonly schedule?: string;
  /** Parts that are wanted however large they are. */
  readonly include?: readonly JobPart[];
  readonly limit: number;
  readonly after?: string;
}

/** Which part of a list to read. */
export interface PageFilter {
  readonly limit: number;
  readonly after?: string;
}

export interface ScheduleFilter extends PageFilter {
  readonly include?: readonly 'payload'[];
}

/** A job, and its id to speak of it. */
export type JobAnswer = Answered<Job> & { readonly id: string };

export interface JobUseCases {
  submit(caller: Caller, body: unknown): Promise<{ readonly created: boolean; readonly job: JobAnswer }>;
  submitBulk(caller: Caller, body: unknown): Promise<{ readonly ids: readonly string[] }>;
  list(caller: Caller, filter: JobFilter): Promise<Answered<Page<ListedJob>>>;
  /** Waits for the end of the job up to `waitMs`; 0 answers at once. */
  get(caller: Caller, id: string, waitMs: number, signal: AbortSignal): Promise<Answered<Job>>;
  logs(caller: Caller, id: string, after: number, limit: number): Promise<Answered<Page<StoredLogLine>>>;
  change(caller: Caller, id: string, body: unknown): Promise<Answered<Job>>;
  cancel(caller: Caller, id: string): Promise<Answered<Job>>;
  retry(caller: Caller, id: string): Promise<Answered<Job>>;
  hold(caller: Caller, id: string): Promise<Answered<Job>>;
  release(caller: Caller, id: string): Promise<Answered<Job>>;
  redrive(caller: Caller, body: unknown): Promise<RedriveAnswer>;
  why(caller: Caller, id: string): Promise<Why>;
}

/** Reports about one attempt, by its worker's key or by the attempt's token. */
export interface AttemptUseCases {
  complete(by: Caller | AttemptCredential, jobId: string, body: unknown): Promise<void>;
  fail(by: Caller | AttemptCredential, jobId: string, body: unknown): Promise<void>;
  progress(by: Caller | AttemptCredential, jobId: string, body: unknown): Promise<void>;
  log(by: Caller | AttemptCredential, jobId: string, body: unknown): Promise<void>;
}

export interface WorkerUseCases {
  register(caller: Caller, body: unknown): Promise<WorkerWelcome>;
  heartbeat(caller: Caller, workerId: string, body: unknown): Promise<HeartbeatAnswer>;
  /** `waitedMs` counts towards the wait that the body asks for. Rejects when the signal aborts. */
  claim(
    caller: Caller,
    workerId: string,
    body: unknown,
    signal: AbortSignal,
    waitedMs?: number,
  ): Promise<ClaimAnswer>;
  report(caller: Caller, workerId: string, body: unknown): Promise<ReportAnswer>;
  /** The same for a worker in this process, whose report has the right form by its making. */
  reportChecked(caller: Caller, workerId: string, report: ReportRequest): Promise<ReportAnswer>;
  leave(caller: Caller, workerId: string, body: unknown): Promise<void>;
  drain(caller: Caller, workerId: string): Promise<WorkerView>;
  list(caller: Caller, filter: PageFilter): Promise<Answered<Page<WorkerView>>>;
  get(caller: Caller, workerId: string): Promise<WorkerView>;
}

export interface QueueUseCases {
  list(caller: Caller, filter: PageFilter): Promise<Answered<Page<QueueView>>>;
  get(caller: Caller, name: string): Promise<QueueView>;
  pause(caller: Caller, name: string): Promise<QueueView>;
  resume(caller: Caller, name: string): Promise<QueueView>;
  change(caller: Caller, name: string, body: unknown): Promise<QueueView>;
}

export interface TenantUseCases {
  create(caller: Caller, body: unknown): Promise<TenantView>;
  list(caller: Caller, after: string | undefined, limit: number): Promise<Page<TenantView>>;
  get(caller: Caller, id: string): Promise<TenantView>;
  change(caller: Caller, id: string, body: unknown): Promise<TenantView>;
}

/** Which part of a ledger to read. */
export interface LedgerFilter {
  readonly from?: string;
  readonly to?: string;
  readonly limit: number;
  readonly after?: string;
}

export interface ScheduleUseCases {
  create(
    caller: Caller,
    body: unknown,
  ): Promise<{ readonly name: string; readonly schedule: Answered<ScheduleView> }>;
  list(caller: Caller, filter: ScheduleFilter): Promise<Answered<Page<ListedSchedule>>>;
  get(caller: Caller, name: string): Promise<Answered<ScheduleView>>;
  change(caller: Caller, name: string, body: unknown): Promise<Answered<ScheduleView>>;
  remove(caller: Caller, name: string): Promise<void>;
  pause(caller: Caller, name: string): Promise<Answered<ScheduleView>>;
  resume(caller: Caller, name: string): Promise<Answered<ScheduleView>>;
  /** Makes a job now, beside the timetable. */
  run(caller: Caller, name: string): Promise<JobAnswer>;
  backfill(caller: Caller, name: string, body: unknown): Promise<BackfillAnswer>;
  occurrences(caller: Caller, name: string, filter: LedgerFilter): Promise<Page<OccurrenceView>>;
  preview(caller: Caller, body: unknown): Promise<PreviewAnswer>;
}

export interface ClusterUseCases {
  view(caller: Caller): Promise<ClusterView>;
  pause(caller: Caller): Promise<ClusterView>;
  resume(caller: Caller): Promise<ClusterView>;
  stats(caller: Caller, historyMs: number): Promise<Answered<StatsView>>;
  /** Prometheus text. */
  metrics(): Promise<string>;
}

export interface HealthView {
  readonly ok: boolean;
  readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly detail: string }>>;
}

/** Jobs that another node wants to hear of, and no more. */
export interface EndsChange {
  /** Counts the changes; said on the line once this one is taken note of. */
  readonly change: number;
  readonly add: readonly string[];
  readonly remove: readonly string[];
}

/** What nodes tell each other. */
export interface PeerUseCases {
  /** Opens a line on which another node is told which jobs end; answers with what aborts when there is no more to come. */
  openEnds(line: string, say: (said: number | readonly string[]) => void): AbortSignal;
  /** Changes of which jobs a line tells. */
  changeEnds(line: string, change: EndsChange): Promise<void>;
  /** Forgets a line. */
  closeEnds(line: string): void;
  /** Takes note of jobs that another node has stored. */
  hint(body: unknown): Promise<void>;
  /** Looks at the lease at once, because another node has given it up. */
  lookAtLease(): void;
  /** Looks at the list of nodes at once, because one has joined. */
  lookAtNodes(): void;
}

/** Whom a key (or another node's token) belongs to. */
export interface KeyIdentity {
  readonly operator: boolean;
  readonly name: string;
  /** Whether the caller is another node of the cluster. */
  readonly node?: boolean;
}

export interface UseCases {
  readonly jobs: JobUseCases;
  readonly attempts: AttemptUseCases;
  readonly workers: WorkerUseCases;
  readonly queues: QueueUseCases;
  readonly tenants: TenantUseCases;
  readonly schedules: ScheduleUseCases;
  readonly cluster: ClusterUseCases;
  /** Resolves a bearer credential, or null when it is none of ours. */
  authenticate(bearer: string): Promise<KeyIdentity | AttemptCredential | null>;
  readonly peers: PeerUseCases;
  ready(): Promise<HealthView>;
}
