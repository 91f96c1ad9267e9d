import { PORTION, TimeSlice } from '../core/time-slice.js';
import type { FencedJob } from '../core/wire.js';
import { stands } from '../host/test-switches.js';
import { releaseClaims } from '../store/claims.js';
import type { StoredAttempt } from '../store/job-places.js';
import { MAX_ANSWER_KIB } from './hand-over.js';
import type { LeaderState } from './leader-state.js';
import type { Running } from './running.js';
import type { WorkerSession } from './worker-session.js';

/** Attempts that one answer orders to stop, so that it is short; the next heartbeat lists the others again. */
const MAX_STOPS = 10_000;

/**
 * Compares the attempts that a worker lists in its heartbeat with those that it was given.
 *
 * Claimed but not listed: offered again under the same fence, because a hand-over that crosses a heartbeat
 * looks just like one that was lost, and calling it lost would start an at-most-once job after declaring it
 * failed. Still not listed after a whole worker timeout: revoked, and requeued once the worker confirms that it
 * never started and never will. Listed but not claimed: stopped, by its fence, so that the order cannot hit a
 * later attempt.
 */
export class Reconciler {
  constructor(private readonly state: LeaderState) {}

  /** The attempts that the worker must stop; marks the listed ones as acknowledged. In slices: a worker may hold thousands. */
  async stops(session: WorkerSession, listed: readonly FencedJob[]): Promise<FencedJob[]> {
    const { state } = this;
    const stop: FencedJob[] = [];
    const slice = new TimeSlice();
    for (const [i, { jobId, fence }] of listed.entries()) {
      if (i % PORTION === PORTION - 1 && slice.isOver) await slice.next();
      const running = state.running.get(jobId);
      const ours = running?.fence === fence && running.worker === session.id;
      if (ours) running.acknowledged = true;
      // While a statement about the job is in flight its outcome is unknown; the next heartbeat decides.
      const wanted = ours ? running.cancelledAt === null : state.turns.has(jobId);
      if (!wanted && stop.length < MAX_STOPS) stop.push({ jobId, fence });
    }
    if (!stands('lost-by-death')) {
      const held = new Set(listed.map(({ jobId }) => jobId));
      void this.takeBack(session.running.filter(({ id }) => !held.has(id)));
    }
    const revoked = session.running.filter((running) => this.isToBeRevoked(running));
    for (const { id, fence } of revoked) stop.push({ jobId: id, fence });
    if (!stands('revoke-confirmed')) void this.takeBack(revoked);
    return stop;
  }

  /** Whether an attempt was offered again, long enough ago to be listed by now, and was never listed. */
  private isToBeRevoked(running: Running): boolean {
    const { clock, config } = this.state;
    const now = clock.steady();
    return (
      !running.acknowledged &&
      running.handedAt > running.since &&
      now - running.since > config.workerTimeout &&
      now - running.handedAt > config.heartbeatInterval * 2
    );
  }

  /**
   * Takes the attempts to offer again, up to the size of one answer: those handed over some time ago and never listed.
   * They count as handed over now.
   */
  takeUnacknowledged(session: WorkerSession, max: number): Running[] {
    const { state } = this;
    const now = state.clock.steady();
    const patience = state.config.heartbeatInterval * 2;
    let count = 0;
    let sizeKib = 0;
    const again = session.running.filter((running) => {
      if (running.acknowledged || count >= max || sizeKib >= MAX_ANSWER_KIB) return false;
      // A hand-over of an earlier leader may have been lost with it, so it is offered again without waiting.
      const isInherited = running.epoch !== state.term.epoch && running.handedAt === running.since;
      if (!isInherited && now - running.handedAt <= patience) return false;
      if (state.turns.has(running.id)) return false;
      count += 1;
      sizeKib += running.sizeKib;
      return true;
    });
    for (const running of again) running.handedAt = now;
    return again;
  }

  /** Requeues attempts that the worker promised never to start. */
  async refused(session: WorkerSession, refused: readonly FencedJob[]): Promise<void> {
    const given: Running[] = [];
    const slice = new TimeSlice();
    for (const [i, { jobId, fence }] of refused.entries()) {
      if (i % PORTION === PORTION - 1 && slice.isOver) await slice.next();
      const running = this.state.running.get(jobId);
      if (running?.list === session.running && running.fence === fence && !running.acknowledged) {
        given.push(running);
      }
    }
    await this.takeBack(given);
  }

  /** Requeues attempts that were handed over and that, as their worker confirmed, never started and never will. */
  takeBack(given: readonly Running[]): Promise<void> {
    const now = this.state.clock.now();
    return this.release(
      given,
      (running) => JSON.stringify(neverStarted(running, now)),
      (running) => this.state.events.retrying(running, NEVER_STARTED),
    );
  }

  /** Requeues claims that were never handed over; they leave no attempt on record. */
  giveBack(orphans: readonly Running[]): Promise<void> {
    return this.release(orphans, () => null);
  }

  /** Releases the claims; the jobs wait again under the next fence. */
  private async release(
    given: readonly Running[],
    attemptOf: (running: Running) => string | null,
    tell?: (running: Running) => void,
  ): Promise<void> {
    const { state } = this;
    // While the list was made in slices, an attempt may have ended and its job may wait again.
    const stillRunning = given.filter((running) => state.running.get(running.id) === running);
    const current = stillRunning.filter(({ id }) => !state.gangs.runOf(id));
    if (current.length < stillRunning.length)
      await state.gangs.listener?.givenUp(stillRunning.filter(({ id }) => state.gangs.runOf(id)));
    const mine = current.filter((running) => state.turns.tryTake(running.id));
    if (mine.length === 0) return;
    let freed = new Set<string>();
    try {
      const releases = mine.map((running) => ({
        id: running.id,
        fence: running.fence,
        attempt: attemptOf(running),
      }));
      freed = new Set(await state.write(() => releaseClaims(state.hot, state.term, releases)));
    } finally {
      for (const running of mine) {
        if (freed.has(running.id)) state.endRunning(running);
        state.turns.release(running.id);
      }
    }
    const waiting = mine.filter(({ id }) => freed.has(id));
    if (tell && state.events.isHeard) for (const running of waiting) tell(running);
    await state.admit(waiting.map((running) => running.waitingAgain(running.runAt)));
  }
}

const NEVER_STARTED = { code: 'NEVER_STARTED', message: 'The attempt was handed over and never began.' };

/** The record of an attempt that was handed over and never started. */
function neverStarted({ fence, epoch, worker, claimedAt }: Running, now: number): StoredAttempt {
  const error = NEVER_STARTED;
  return { fence, epoch, worker, claimedAt, startedAt: null, finishedAt: now, outcome: 'lost', error };
}
