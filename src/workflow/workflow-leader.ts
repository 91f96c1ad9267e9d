import type { AuditEntry } from '../core/audit.js';
import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import type { Log } from '../core/log.js';
import type { WorkflowEnd, WorkflowState } from '../core/workflow.js';
import type { Pool, Queryable } from '../store/database.js';
import type { EndedJob, EndedStep } from '../store/ended-jobs.js';
import type { Keep } from '../store/idempotency.js';
import type { TermKey } from '../store/leader-statement.js';
import type { Waiting } from '../store/read-backlog.js';
import type { TaskDefinitions } from '../store/task-definitions.js';
import type { EndedWorkflow } from '../store/workflow-portions.js';

import type { WorkflowMeters } from './workflow-meters.js';

/** Tells those who listen what becomes of workflows; to be called only while somebody does. */
interface WorkflowEvents {
  readonly isHeard: boolean;
  endedWaiting(jobs: readonly EndedJob[]): void;
  workflow(
    type: `workflow.${'changed' | 'stopping' | 'retried' | WorkflowEnd}`,
    workflow: { readonly id: string; readonly tenant: string },
    state: WorkflowState,
    change?: 'cancel' | 'failure' | 'hold' | 'release',
  ): void;
  submitted(jobs: readonly Waiting[]): void;
}

/** The part of the leader's state that workflows use. It lasts for one term. */
export interface WorkflowLeader {
  readonly term: TermKey;
  /** Whether the term is over. */
  readonly isOver: boolean;
  readonly hot: Pool;
  /** For counts of jobs, which may take longer. */
  readonly pool: Pool;
  readonly clock: Clock;
  readonly config: Config;
  readonly log: Log;
  readonly events: WorkflowEvents;
  readonly tasks: TaskDefinitions;
  readonly workflowMeters: WorkflowMeters;
  /** Workflows that ended before it are being removed. */
  readonly keptSince: number;
  /** Set by the workflows; called after the commit with the steps that have ended. */
  noteSteps: (steps: readonly EndedStep[]) => void;
  /** Runs a fenced write; the term ends when its outcome is unknown. */
  write<T>(work: () => Promise<T>): Promise<T>;
  /** The same for what somebody requested, with its entry of the audit and its kept answer if it has them. */
  writeRequested<T>(
    entry: AuditEntry | undefined,
    keep: Keep<T> | undefined,
    work: (db: Queryable, term: TermKey) => Promise<T>,
  ): Promise<T>;
  /** The same for a write that ends jobs; whoever waits for one of them is told. */
  writeEnds<J extends EndedJob>(work: () => Promise<readonly J[]>): Promise<readonly J[]>;
  /** Tells whoever waits for the ends of jobs or workflows. */
  ended(ended: readonly (EndedJob | EndedWorkflow)[]): void;
  /** Adds jobs that were just written, and whose room was taken, to the backlog. */
  admit(jobs: readonly Waiting[]): Promise<void>;
  /** Adds new jobs that were written to the backlog, and counts them for the quota of their tenant. */
  admitNew(jobs: readonly Waiting[]): Promise<void>;
  readonly addedJobs: {
    /** Counts jobs that moved to the live table or to `later`, for the quota of their tenant. */
    note(tenant: string, live: number, later: number): void;
    /** Whether the tenant may have a quota of jobs. */
    mayCount(tenant: string): boolean;
  };
  /** Takes the turn of a job if it is free, which also removes it from the backlog. */
  tryTurn(jobId: string): boolean;
  /** Waits for the turn of a job and takes it. */
  turn(jobId: string): Promise<void>;
  readonly turns: { release(jobId: string): void };
  /** Reads jobs whose turn was taken from the table again, so that memory agrees with it. */
  follow(jobIds: readonly string[]): Promise<void>;
  /** Whether the job runs. */
  readonly running: { has(jobId: string): boolean };
}

/** Cancels a job, waiting or running, as a request to cancel it would. */
export type CancelJob = (tenant: string, jobId: string) => Promise<void>;
