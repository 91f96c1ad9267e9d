import { PunctualError } from '../core/errors.js';
import { bucketOf, emptyHistogram } from '../core/histogram.js';
import type { JobRow } from '../store/job-row.js';
import { toWaiting } from '../store/new-waiting.js';
import { submitAndClaim } from '../store/submit-and-claim.js';
import { handOver } from './handing-over.js';
import type { QueueLine } from './queue-line.js';
import { type Running, startRunning } from './running.js';
import type { Poll } from './session.js';
import type { LeaderState } from './state.js';

/**
 * The shortest way from a submission to its start: a job that finds a worker waiting, and nobody ahead of it, is
 * stored and claimed in one transaction. Whatever has a limit, a key or a rival takes the ordinary way.
 */
export class Express {
  constructor(
    private readonly state: LeaderState,
    private readonly onOrphans: (orphans: readonly Running[]) => void,
  ) {}

  /** Stores the job and starts it; answers false, with nothing done, when it has to take the ordinary way. */
  async submit(row: JobRow): Promise<boolean> {
    const { state } = this;
    const now = state.clock.now();
    const line = this.freeLine(row, now);
    const poll = line && this.waitingPoll(row, line);
    if (!line || !poll || !state.turns.tryTake(row.id)) return false;
    const use = { queue: row.queue, tenant: row.tenant, key: null };
    poll.reserved = true;
    line.reserve(use);
    const lateness = emptyHistogram();
    lateness[bucketOf(Math.max(0, now - row.run_at))]! += 1;
    let orphans: Running[] = [];
    try {
      await state.write(() => submitAndClaim(state.hot, state.term, row, poll.session.id, now, lateness));
      const running = startRunning(
        toWaiting(row),
        claimedAs(row),
        poll.session.id,
        state.term.epoch,
        state.clock,
        now,
      );
      orphans = handOver(state, [{ running, poll }]);
      return true;
    } catch (error) {
      state.shares.release(use);
      return this.afterFailure(error);
    } finally {
      poll.reserved = false;
      state.turns.give(row.id);
      if (orphans.length > 0) this.onOrphans(orphans);
      state.wakeClaiming();
    }
  }

  /** Without a term nothing was stored, and the ordinary way needs none; what is unknown must be told as such. */
  private afterFailure(error: unknown): false {
    if (error instanceof PunctualError && error.code === 'NO_LEADER') return false;
    throw error;
  }

  /** The queue, when nothing in it could start before and none of its limits has to be looked at. */
  private freeLine(row: JobRow, now: number): QueueLine | null {
    const { state } = this;
    if (state.paused || state.term.over || !state.isLoaded || !state.directory.knows(row)) return null;
    if (row.run_at > now || row.concurrency_key !== null || row.key !== null) return null;
    if (row.start_before !== null && row.start_before <= now) return null;
    const line = state.shares.line(row.queue);
    const isLimited = line.bucket !== null || line.tenant.bucket !== null || line.isSaturated;
    return isLimited || !line.isClear || line.info.paused ? null : line;
  }

  private waitingPoll(row: JobRow, line: QueueLine): Poll | undefined {
    const { sessions, fitness, shares } = this.state;
    for (const session of sessions.values()) {
      if (session.draining || session.bucket || session.polls.size === 0) continue;
      if (!session.serves(line.info) || !fitness.fits(session, row.needs)) continue;
      // Somebody in another queue, or another tenant, may be waiting for this very worker.
      if (!shares.isQuietFor(session)) continue;
      for (const poll of session.polls) if (!poll.settled && !poll.reserved) return poll;
    }
    return undefined;
  }
}

/** What a claim would have told about the row. */
function claimedAs(row: JobRow) {
  return {
    id: row.id,
    task: row.task,
    target: row.target,
    payload: row.payload,
    timeoutMs: row.timeout_ms,
    failures: 0,
    losses: 0,
    maxAttempts: row.max_attempts,
    maxLosses: row.max_losses,
    atMostOnce: row.at_most_once,
    backoff: row.backoff,
    runAt: row.run_at,
    lateBy: null,
  };
}
