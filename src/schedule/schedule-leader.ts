import type { AuditEntry } from '../core/audit.js';
import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import type { Log } from '../core/log.js';
import type { Pool, Queryable } from '../store/database.js';
import type { EndedJob } from '../store/ended-jobs.js';
import type { ScheduledJob } from '../store/fire-occurrences.js';
import type { Keep } from '../store/idempotency.js';
import type { JobRow } from '../store/job-row.js';
import type { TermKey } from '../store/leader-statement.js';
import type { Waiting } from '../store/read-backlog.js';
import type { NewBatch } from '../store/submit-batch.js';
import type { NewWorkflow } from '../store/submit-workflow.js';
import type { TaskDefinitions } from '../store/task-definitions.js';

/** Tells those who listen what becomes of schedules; to be called only while somebody does. */
interface ScheduleEvents {
  readonly isHeard: boolean;
  fired(tenant: string, schedule: string, job: { readonly id: string; readonly task: string | null }): void;
  firedRun(tenant: string, schedule: string, run: { workflow: string } | { batch: string }): void;
  missed(tenant: string, schedule: string, count: number): void;
  scheduleChanged(
    tenant: string,
    schedule: string,
    change: 'created' | 'changed' | 'paused' | 'resumed' | 'deleted',
    reason?: 'gone',
  ): void;
}

/** The part of the leader's state that schedules use. It lasts for one term. */
export interface ScheduleLeader {
  readonly term: TermKey;
  /** Whether the term is over. */
  readonly isOver: boolean;
  readonly hot: Pool;
  readonly clock: Clock;
  readonly config: Config;
  readonly log: Log;
  readonly events: ScheduleEvents;
  readonly tasks: TaskDefinitions;
  /** Runs a fenced write; the term ends when its outcome is unknown. */
  write<T>(work: () => Promise<T>): Promise<T>;
  /** The same for what somebody requested, with its entry of the audit and its kept answer if it has them. */
  writeRequested<T>(
    entry: AuditEntry | undefined,
    keep: Keep<T> | undefined,
    work: (db: Queryable, term: TermKey) => Promise<T>,
  ): Promise<T>;
  /** Told that an entry of the audit was written. */
  noteEntry(): void;
  /** The same for a write that ends jobs; whoever waits for one of them is told. */
  writeEnds(work: () => Promise<readonly EndedJob[]>): Promise<readonly EndedJob[]>;
  /** Adds new jobs that were written to the backlog, and counts them for the quota of their tenant. */
  admitNew(jobs: readonly Waiting[]): Promise<void>;
  /** Takes the turn of a job, which also removes it from the backlog. */
  turn(jobId: string): Promise<void>;
  readonly turns: { release(jobId: string): void };
  /** Reads jobs whose turn was taken from the table again, so that memory agrees with it. */
  follow(jobIds: readonly string[]): Promise<void>;
  /** Calls back once when the job ends; answers with a way to stop listening. */
  onJobEnd(jobId: string, listener: () => void): () => void;
}

/** What is done to the runs of schedules. */
export interface RunControl {
  /** Cancels a job, waiting or running, as a request to cancel it would; so do the next two. */
  cancelJob(tenant: string, jobId: string): Promise<void>;
  cancelWorkflow(tenant: string, id: string): Promise<void>;
  cancelBatch(tenant: string, id: string): Promise<void>;
  /** Takes a workflow into memory that was stored. */
  workflowStored(workflow: NewWorkflow): Promise<void>;
  /** Takes a batch into memory that was stored. */
  batchStored(batch: NewBatch, members: readonly JobRow[]): Promise<void>;
}

/** Tells those who listen of jobs that schedules have made. */
export function tellFired({ events }: ScheduleLeader, jobs: readonly ScheduledJob[]): void {
  if (!events.isHeard) return;
  for (const { schedule, row } of jobs) {
    const { tenant, task } = row.definition;
    events.fired(tenant, schedule, { id: row.id, task });
  }
}
