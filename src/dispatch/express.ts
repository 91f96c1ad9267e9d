import { PunctualError } from '../core/errors.js';
import { bucketOf, emptyHistogram } from '../core/histogram.js';
import type { JobRow } from '../store/job-row.js';
import type { Resolved } from '../store/names.js';
import { toWaiting } from '../store/new-waiting.js';
import { submitAndClaim } from '../store/submit-and-claim.js';
import { handOver } from './handing-over.js';
import type { QueueLine } from './queue-line.js';
import { factsOfNew, Running } from './running.js';
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
  async submit(row: JobRow, names: Resolved): Promise<boolean> {
    const { state } = this;
    const now = state.clock.now();
    const line = this.freeLine(row, now);
    const poll = line && this.waitingPoll(row, line);
    if (!line || !poll || !state.turns.tryTake(row.id)) return false;
    const { queue, tenant, run_at } = row.definition;
    const use = { queue, tenant, key: null };
    poll.reserved = true;
    line.reserve(use);
    const lateness = emptyHistogram();
    lateness[bucketOf(Math.max(0, now - run_at))]! += 1;
    let orphans: Running[] = [];
    try {
      const worker = poll.session.id;
      const isStored = await state.write(() =>
        submitAndClaim(state.hot, state.term, row, names, worker, now, lateness),
      );
      if (!isStored) {
        state.shares.release(use);
        return false;
      }
      const claim = {
        worker,
        epoch: state.term.epoch,
        claimedAt: now,
        since: state.clock.steady(),
      };
      const work = { payload: row.payload, target: row.definition.target };
      const running = new Running({ ...toWaiting(row), row: null }, factsOfNew(row.definition), claim);
      orphans = handOver(state, [{ running, work, poll }]);
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
  private freeLine({ id, definition }: JobRow, now: number): QueueLine | null {
    const { state } = this;
    if (state.paused || state.term.over || !state.isLoaded || !state.directory.knows(definition)) return null;
    const { queue, run_at, key, concurrency_key, start_before } = definition;
    if (run_at > now || concurrency_key !== null || key !== null) return null;
    if (start_before !== null && start_before <= now) return null;
    // As for every job that is taken in: memory may be wrong about what the numbers stand for.
    if (!state.hasPlace({ id, ...definition })) return null;
    const line = state.shares.line(queue);
    const isLimited = line.bucket !== null || line.tenant.bucket !== null || line.isSaturated;
    return isLimited || !line.isClear || line.info.paused ? null : line;
  }

  private waitingPoll(row: JobRow, line: QueueLine): Poll | undefined {
    const { sessions, fitness, shares } = this.state;
    for (const session of sessions.values()) {
      if (session.draining || session.bucket || session.polls.size === 0) continue;
      if (!session.serves(line.info) || !fitness.fits(session, row.definition.needs)) continue;
      // Somebody in another queue, or another tenant, may be waiting for this very worker.
      if (!shares.isQuietFor(session)) continue;
      for (const poll of session.polls) if (!poll.settled && !poll.reserved) return poll;
    }
    return undefined;
  }
}
