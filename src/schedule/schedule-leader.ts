import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import type { Log } from '../core/log.js';
import type { Pool } from '../store/database.js';
import type { EndedJob } from '../store/ended-jobs.js';
import type { TermKey } from '../store/leader-statement.js';
import type { Waiting } from '../store/read-backlog.js';

/** The part of the leader's state that schedules use. It lasts for one term. */
export interface ScheduleLeader {
  readonly term: TermKey;
  /** Whether the term is over. */
  readonly isOver: boolean;
  readonly hot: Pool;
  readonly clock: Clock;
  readonly config: Config;
  readonly log: Log;
  /** Runs a fenced write; the term ends when its outcome is unknown. */
  write<T>(work: () => Promise<T>): Promise<T>;
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

/** Cancels a job, waiting or running, as a request to cancel it would. */
export type CancelJob = (tenant: string, jobId: string) => Promise<void>;
