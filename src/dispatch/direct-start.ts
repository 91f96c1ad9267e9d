import { PunctualError } from '../core/errors.js';
import { bucketOf, emptyHistogram } from '../core/histogram.js';
import type { JobRow } from '../store/job-row.js';
import type { Resolved } from '../store/names.js';
import { toWaiting } from '../store/read-backlog.js';
import { submitAndClaim } from '../store/submit-and-claim.js';
import { handOver } from './hand-over.js';
import type { LeaderState } from './leader-state.js';
import type { QueueShare } from './queue-share.js';
import { factsOfNew, Running } from './running.js';
import { isFree, type Poll } from './worker-session.js';

/**
 * Starts a submission directly: if a worker waits and no other job comes first, the job is stored and claimed in one
 * transaction. A job with a key or a concurrency key, whose queue is limited in rate or saturated, or whose origin is not to be
 * called now, goes through the backlog.
 */
export class DirectStart {
  constructor(
    private readonly state: LeaderState,
    private readonly onOrphans: (orphans: readonly Running[]) => void,
  ) {}

  /** Stores the job and starts it; answers false, with nothing done, when it must be submitted through the backlog. */
  async submit(row: JobRow, names: Resolved, isCounted: boolean): Promise<boolean> {
    const { state } = this;
    const now = state.clock.now();
    const share = this.freeQueue(row, now);
    const poll = share && this.waitingPoll(row, share);
    if (!share || !poll || !state.turns.tryTake(row.id)) return false;
    const { queue, tenant, run_at } = row.definition;
    const use = { id: row.id, needs: row.definition.needs, queue, tenant, key: null };
    poll.reserved = true;
    state.shares.reserveNew(use, row.definition.target !== null);
    const lateness = emptyHistogram();
    lateness[bucketOf(Math.max(0, now - run_at))]! += 1;
    let orphans: Running[] = [];
    try {
      const worker = poll.session.id;
      const isStored = await state.write(() =>
        submitAndClaim(state.hot, state.term, row, names, worker, now, lateness, isCounted),
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
      const { target, traceparent } = row.definition;
      const work = { payload: row.payload, target, traceparent, workflow: null };
      const waiting = toWaiting(row);
      if (state.events.isHeard) state.events.submitted([waiting]);
      const running = new Running({ ...waiting, row: null }, factsOfNew(row.definition, {}), claim);
      orphans = handOver(state, [{ running, work, poll }], this.onOrphans);
      return true;
    } catch (error) {
      state.shares.release(use);
      return this.afterFailure(error);
    } finally {
      poll.reserved = false;
      state.turns.release(row.id);
      if (orphans.length > 0) this.onOrphans(orphans);
      state.wakeClaiming();
    }
  }

  /** Without a term nothing was stored, and an ordinary submission needs none; any other error reaches the caller. */
  private afterFailure(error: unknown): false {
    if (error instanceof PunctualError && error.code === 'NO_LEADER') return false;
    throw error;
  }

  /** The queue of the job, if none of its jobs could start first and it has no limit to check. */
  private freeQueue({ id, definition }: JobRow, now: number): QueueShare | null {
    const { state } = this;
    // What a batch waits for is decided by the claimer alone.
    if (state.gangs.isWaiting) return null;
    if (state.paused || state.term.over || !state.isLoaded || !state.directory.knows(definition)) return null;
    const { queue, run_at, key, concurrency_key, start_before } = definition;
    if (run_at > now || concurrency_key !== null || key !== null) return null;
    if (start_before !== null && start_before <= now) return null;
    if (definition.target !== null && state.origins.isShutTo(definition.needs)) return null;
    // Checked for every job that enters memory: memory may be wrong about the names of these ids.
    if (!state.hasKnownNames({ id, ...definition })) return null;
    const share = state.shares.queue(queue);
    const isLimited = share.bucket !== null || share.tenant.bucket !== null || share.isSaturated;
    return isLimited || !share.isClear || share.info.paused ? null : share;
  }

  private waitingPoll(row: JobRow, share: QueueShare): Poll | undefined {
    const { sessions, fitness, shares } = this.state;
    for (const session of sessions.values()) {
      if (session.draining || session.bucket || session.polls.size === 0) continue;
      const { tenant, needs } = row.definition;
      if (!session.serves(share.info) || !session.servesTenant(tenant)) continue;
      if (!fitness.fits(session, needs)) continue;
      // A job of another queue or tenant may be waiting for this very worker.
      if (!shares.isQuietFor(session)) continue;
      for (const poll of session.polls) if (isFree(poll)) return poll;
    }
    return undefined;
  }
}
