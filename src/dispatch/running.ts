import type { Clock } from '../core/clock.js';
import type { Progress } from '../core/job.js';
import { type Backoff, DEFAULT_BACKOFF } from '../core/retry.js';
import type { RunningJob } from '../core/transition.js';
import type { ClaimedJob } from '../store/claim-jobs.js';
import type { StoredClaim, Work } from '../store/claims.js';
import type { JobRow, StoredDefinition } from '../store/job-row.js';
import type { Cursor, Waiting } from '../store/read-backlog.js';
import type { RunningList } from './running-list.js';

/** What decides about the attempts of a job. New jobs of one bulk share the object. */
export interface JobFacts {
  readonly task: string | null;
  readonly timeoutMs: number;
  readonly failures: number;
  readonly losses: number;
  readonly maxAttempts: number;
  readonly maxLosses: number;
  readonly atMostOnce: boolean;
  readonly backoff: Backoff;
  readonly runAt: number;
  readonly lateBy: number | null;
  /** The name of the schedule that made the job. */
  readonly schedule: string | null;
  /** The workflow that it is a step of, and the batch that it is a member of. */
  readonly workflow: string | null;
  readonly batch: string | null;
}

/** A claim: its worker, time and term. Jobs that were claimed together share the object. */
export interface ClaimFacts {
  readonly worker: string;
  readonly epoch: number;
  readonly claimedAt: number;
  /** When the claim was made, on the steady clock. */
  readonly since: number;
}

/**
 * A claimed job: its attempt, its worker, and what decides about its end. Payload and target are not kept, because they
 * may be large; the few attempts that are handed over again read them from the table.
 */
export class Running implements RunningJob {
  readonly id: string;
  readonly fence: number;
  /** Whether its end is decided and about to be written. Its turn is taken then. */
  isEnding = false;
  /** Whether the worker has shown that it received the assignment. */
  acknowledged = false;
  /** When the assignment was last put into an answer, on the steady clock. */
  handedAt: number;
  /** When somebody asked for it to be cancelled, on the steady clock. */
  cancelledAt: number | null = null;
  /** Whether its worker has handed it on: no worker holds it, and its token will report its end. */
  isHandedOn = false;
  /** When it started, on the database's clock; known only if it was handed on. */
  startedAt: number | null = null;
  progress: Progress | null = null;
  progressSaved = true;
  /** The list of its worker that it is in, and its neighbours there. */
  list: RunningList | null = null;
  previous: Running | null = null;
  next: Running | null = null;

  constructor(
    private readonly job: Waiting,
    readonly facts: JobFacts,
    private readonly claim: ClaimFacts,
  ) {
    this.id = job.id;
    this.fence = job.fence;
    this.handedAt = claim.since;
  }

  get worker(): string {
    return this.claim.worker;
  }

  get epoch(): number {
    return this.claim.epoch;
  }

  get claimedAt(): number {
    return this.claim.claimedAt;
  }

  get since(): number {
    return this.claim.since;
  }

  /** When its timeout ends, on the steady clock. */
  get deadline(): number {
    return this.since + Math.max(0, (this.startedAt ?? 0) - this.claimedAt) + this.timeoutMs;
  }

  get tenant(): string {
    return this.job.tenant;
  }

  get queue(): number {
    return this.job.queue;
  }

  get needs(): number {
    return this.job.needs;
  }

  /** The position of its row in the order of waiting jobs. */
  get cursor(): Cursor {
    const { queue, needs, lane, rank, id } = this.job;
    return { queue, needs, lane, rank, runAt: this.runAt, id };
  }

  get key(): string | null {
    return this.job.key;
  }

  get runAt(): number {
    return this.facts.runAt;
  }

  get task(): string | null {
    return this.facts.task;
  }

  get timeoutMs(): number {
    return this.facts.timeoutMs;
  }

  get failures(): number {
    return this.facts.failures;
  }

  get losses(): number {
    return this.facts.losses;
  }

  get maxAttempts(): number {
    return this.facts.maxAttempts;
  }

  get maxLosses(): number {
    return this.facts.maxLosses;
  }

  get atMostOnce(): boolean {
    return this.facts.atMostOnce;
  }

  get backoff(): Backoff {
    return this.facts.backoff;
  }

  get lateBy(): number | null {
    return this.facts.lateBy;
  }

  /** The size of its assignment in kibibytes, rounded down. */
  get sizeKib(): number {
    return this.job.sizeKib;
  }

  /** The job as it waits for its next attempt, without its row. */
  waitingAgain(runAt: number): Waiting {
    const { id, tenant, queue, needs, lane, key, rank, fence, startBefore, sizeKib } = this.job;
    return { id, tenant, queue, needs, lane, key, rank, runAt, fence: fence + 1, startBefore, sizeKib };
  }
}

function parseBackoff(text: string | null): Backoff {
  return text === null ? DEFAULT_BACKOFF : (JSON.parse(text) as Backoff);
}

/** The facts of a job as its claim returned them. */
export function factsOf(job: Omit<ClaimedJob, Exclude<keyof Work, 'workflow'>>): JobFacts {
  return {
    task: job.task,
    timeoutMs: job.timeoutMs,
    failures: job.failures,
    losses: job.losses,
    maxAttempts: job.maxAttempts,
    maxLosses: job.maxLosses,
    atMostOnce: job.atMostOnce,
    backoff: parseBackoff(job.backoff),
    runAt: job.runAt,
    lateBy: job.lateBy,
    schedule: job.schedule,
    workflow: job.workflow,
    batch: job.batch,
  };
}

/** The facts of a job that has just been stored. */
export function factsOfNew(
  definition: StoredDefinition,
  { schedule, workflow }: Pick<JobRow, 'schedule' | 'workflow'>,
): JobFacts {
  return {
    task: definition.task,
    timeoutMs: definition.timeout_ms,
    failures: 0,
    losses: 0,
    maxAttempts: definition.max_attempts,
    maxLosses: definition.max_losses,
    atMostOnce: definition.at_most_once,
    backoff: parseBackoff(definition.backoff),
    runAt: definition.run_at,
    lateBy: null,
    schedule: schedule ?? null,
    workflow: workflow ?? null,
    batch: null,
  };
}

/** A running job from a claim of an earlier term; it is not known whether its hand-over arrived. */
export function resumeRunning(claim: StoredClaim, clock: Clock): Running {
  const since = clock.steady() - Math.max(0, clock.now() - claim.claimedAt);
  const { worker, epoch, claimedAt } = claim;
  const running = new Running(claim, factsOf(claim), { worker, epoch, claimedAt, since });
  running.cancelledAt = claim.cancelledAt === null ? null : clock.steady();
  running.isHandedOn = claim.handedOnAt !== null;
  running.startedAt = claim.startedAt;
  running.progress = claim.progress === null ? null : (JSON.parse(claim.progress) as Progress);
  return running;
}
