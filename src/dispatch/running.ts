import type { Clock } from '../core/clock.js';
import type { Progress } from '../core/job.js';
import { type Backoff, DEFAULT_BACKOFF } from '../core/retry.js';
import type { ClaimedRow } from '../store/claim-jobs.js';
import type { StoredClaim } from '../store/claims.js';
import type { Waiting } from '../store/read-backlog.js';

/** A claimed job: what its attempt is, who has it, and what decides about its end. */
export interface Running {
  readonly id: string;
  readonly tenant: string;
  readonly queue: number;
  readonly needs: number;
  readonly lane: number;
  readonly key: string | null;
  readonly rank: number;
  readonly fence: number;
  readonly epoch: number;
  readonly worker: string;
  readonly claimedAt: number;
  readonly runAt: number;
  readonly lateBy: number | null;
  readonly startBefore: number | null;
  readonly task: string | null;
  readonly target: string | null;
  readonly payload: string;
  readonly timeoutMs: number;
  readonly failures: number;
  readonly losses: number;
  readonly maxAttempts: number;
  readonly maxLosses: number;
  readonly atMostOnce: boolean;
  readonly backoff: Backoff;
  /** Whether the worker has shown that it received the assignment. */
  acknowledged: boolean;
  /** When the claim was made, on the steady clock. */
  readonly since: number;
  /** When the assignment was last put into an answer, on the steady clock. */
  handedAt: number;
  /** When somebody asked for it to be cancelled, on the steady clock. */
  cancelledAt: number | null;
  progress: Progress | null;
  progressSaved: boolean;
}

function parseBackoff(text: string | null): Backoff {
  return text === null ? DEFAULT_BACKOFF : (JSON.parse(text) as Backoff);
}

/** A job that was claimed just now. */
export function startRunning(
  entry: Waiting,
  row: ClaimedRow,
  worker: string,
  epoch: number,
  clock: Clock,
  now: number,
): Running {
  const since = clock.steady();
  return {
    id: entry.id,
    tenant: entry.tenant,
    queue: entry.queue,
    needs: entry.needs,
    lane: entry.lane,
    key: entry.key,
    rank: entry.rank,
    fence: entry.fence,
    epoch,
    worker,
    claimedAt: now,
    runAt: row.runAt,
    lateBy: row.lateBy,
    startBefore: entry.startBefore,
    task: row.task,
    target: row.target,
    payload: row.payload,
    timeoutMs: row.timeoutMs,
    failures: row.failures,
    losses: row.losses,
    maxAttempts: row.maxAttempts,
    maxLosses: row.maxLosses,
    atMostOnce: row.atMostOnce,
    backoff: parseBackoff(row.backoff),
    acknowledged: false,
    since,
    handedAt: since,
    cancelledAt: null,
    progress: null,
    progressSaved: true,
  };
}

/** A claim that an earlier term made; whether the hand-over arrived is not known. */
export function resumeRunning(claim: StoredClaim, clock: Clock): Running {
  const { progress, backoff, cancelledAt, ...rest } = claim;
  const since = clock.steady() - Math.max(0, clock.now() - claim.claimedAt);
  return {
    ...rest,
    backoff: parseBackoff(backoff),
    acknowledged: false,
    since,
    handedAt: since,
    cancelledAt: cancelledAt === null ? null : clock.steady(),
    progress: progress === null ? null : (JSON.parse(progress) as Progress),
    progressSaved: true,
  };
}

/** The job as it waits for its next attempt: what choosing needs, and nothing of its payload. */
export function waitingAgain(running: Running, runAt: number): Waiting {
  const { id, tenant, queue, needs, lane, key, rank, fence, startBefore } = running;
  return { id, tenant, queue, needs, lane, key, rank, runAt, fence: fence + 1, startBefore };
}
