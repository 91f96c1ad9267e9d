import type { Clock } from '../core/clock.js';
import type { Config } from '../core/config.js';
import type { Log } from '../core/log.js';
import type { Pool } from '../store/database.js';
import type { EndedJob } from '../store/ended-jobs.js';
import type { TermKey } from '../store/leader-statement.js';
import type { Waiting } from '../store/read-backlog.js';

/** What schedules need of the leader whose term they live in. */
export interface Leader {
  readonly term: TermKey;
  /** Whether its term is over. */
  readonly isOver: boolean;
  readonly hot: Pool;
  readonly clock: Clock;
  readonly config: Config;
  readonly log: Log;
  /** Runs a leader's write; the term ends when its outcome is not known. */
  write<T>(work: () => Promise<T>): Promise<T>;
  /** The same for a write that ends jobs; whoever waits for one of them is told. */
  writeEnds(work: () => Promise<readonly EndedJob[]>): Promise<readonly EndedJob[]>;
  /** Takes in jobs that were written. */
  admit(jobs: readonly Waiting[]): Promise<void>;
  /** Takes the turn of a job, which also takes it out of the backlog. */
  turn(jobId: string): Promise<void>;
  readonly turns: { give(jobId: string): void };
  /** Lets memory follow the table for jobs whose turn was taken. */
  follow(jobIds: readonly string[]): Promise<void>;
  /** Calls back once when the job ends. */
  onJobEnd(jobId: string, listener: () => void): () => void;
}

/** Cancels a job, waiting or running, as if somebody had asked for it. */
export type CancelJob = (tenant: string, jobId: string) => Promise<void>;
