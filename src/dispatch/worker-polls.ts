import { type KeyLimits, withinBoth } from '../core/access.js';
import { messageOf } from '../core/errors.js';
import type { ClaimAnswer } from '../core/wire.js';
import { readWork } from '../store/claims.js';
import { assignmentsOf } from './assignment.js';
import { type LeaderState, noLeader } from './leader-state.js';
import type { Reconciler } from './reconciler.js';
import type { Running } from './running.js';
import { isFree, type Poll, type SessionUser, type WorkerSession } from './worker-session.js';

/** The claim requests of workers: each waits for work, and jobs whose hand-over was not acknowledged come first. */
export class WorkerPolls {
  constructor(
    private readonly state: LeaderState,
    private readonly reconciler: Reconciler,
  ) {}

  /**
   * Waits for work, for at most `waitMs`; at the hand-over it is asked once more whether the request is welcome. A key may
   * claim for a session that another key has opened, and its tokens must not reach further than either of the two.
   */
  async open(
    session: WorkerSession,
    user: SessionUser,
    max: number,
    waitMs: number,
    signal: AbortSignal | undefined,
    isWelcome: Poll['isWelcome'],
  ): Promise<ClaimAnswer> {
    const { state } = this;
    const limits = withinBoth(session.limits, user.key?.limits ?? null);
    const again = this.reconciler.takeUnacknowledged(session, max);
    if (again.length > 0) {
      const answer = await this.handOverAgain(session, limits, again);
      // If all of them have ended meanwhile, the request waits for others: an empty answer would make the worker pause.
      if (answer.jobs.length > 0 || !state.sessions.has(session.id)) return answer;
    }
    // An error instead of an empty answer: a worker that is still there should ask elsewhere.
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const end = () => {
        if (poll.settled) return false;
        poll.settled = true;
        clearTimeout(timer);
        signal?.removeEventListener('abort', onAbort);
        return session.polls.delete(poll);
      };
      const timer = setTimeout(() => poll.settle({ epoch: state.term.epoch, jobs: [] }), waitMs);
      const onAbort = () => poll.fail(signal?.reason);
      const poll: Poll = {
        session,
        max,
        limits,
        given: [],
        isWelcome,
        settled: false,
        reserved: false,
        isChecked: false,
        settle: (answer) => {
          if (end()) resolve(answer);
        },
        fail: (error) => {
          if (end()) reject(error);
        },
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      session.polls.add(poll);
      state.wakeClaiming();
    });
  }

  /** Offers unacknowledged attempts to the polls of the session that are open already. */
  offerAgain(session: WorkerSession): void {
    for (const poll of session.polls) {
      if (!isFree(poll)) continue;
      const again = this.reconciler.takeUnacknowledged(session, poll.max);
      if (again.length > 0) void this.answerAgain(poll, again);
    }
  }

  /** Reads payload and target of these attempts, which memory does not keep; answers with those that still run. */
  private async handOverAgain(
    session: WorkerSession,
    limits: KeyLimits | null,
    again: readonly Running[],
  ): Promise<ClaimAnswer> {
    const { state } = this;
    const found = await readWork(
      state.hot,
      again.map((running) => running.id),
    );
    if (state.isOver) throw noLeader();
    const isOpen = state.sessions.has(session.id);
    const handed = again.flatMap((running) => {
      const work = found.get(running.id);
      const runs = isOpen && running.list === session.running && !state.turns.has(running.id);
      return work && runs ? [{ running, work }] : [];
    });
    return { epoch: state.term.epoch, jobs: assignmentsOf(handed, session, limits, state) };
  }

  private async answerAgain(poll: Poll, again: readonly Running[]): Promise<void> {
    const { state } = this;
    // If the poll got a job from elsewhere meanwhile it would be settled, and these attempts would reach nobody.
    poll.reserved = true;
    try {
      const answer = await this.handOverAgain(poll.session, poll.limits, again);
      // What it does not get is offered to the next request of the session.
      if (answer.jobs.length > 0) poll.settle((await poll.isWelcome()) ? answer : { ...answer, jobs: [] });
    } catch (error) {
      // They are offered again after the same pause.
      const { session } = poll;
      state.log.warn({ worker: session.id, error: messageOf(error) }, 'jobs could not be offered again');
    } finally {
      poll.reserved = false;
      state.wakeClaiming();
    }
  }
}
