import { assignmentsOf, type Handed } from './assignment.js';
import type { LeaderState } from './leader-state.js';
import type { Running } from './running.js';
import type { Poll } from './worker-session.js';

/** A claim that was committed, and the poll it was made for. */
export interface Claimed extends Handed {
  readonly poll: Poll;
}

/**
 * The size from which on an answer takes no further job: it is built, sent and parsed in one piece, which blocks the
 * event loop on both sides. The worker asks again for the rest.
 */
export const MAX_ANSWER_KIB = 1_024;

/**
 * Gives claimed jobs to the workers they were claimed for. Must be called after the commit, never before. Answers with
 * those whose session or poll ended while the claim was in flight: the caller gives their claims back once the turns
 * of their jobs are free.
 */
export function handOver(state: LeaderState, claimed: readonly Claimed[]): Running[] {
  const polls = new Set<Poll>();
  const orphans: Running[] = [];
  for (const each of claimed) {
    const { running, poll } = each;
    state.running.set(running.id, running);
    state.meters.claimed(running);
    poll.session.running.add(running);
    // A key that may have ended since gets nothing; its next request is told so, if it has.
    if (!poll.settled && !polls.has(poll) && !poll.isWelcome())
      poll.settle({ epoch: state.term.epoch, jobs: [] });
    if (poll.settled || !state.sessions.has(poll.session.id)) orphans.push(running);
    else {
      poll.given.push(each);
      polls.add(poll);
    }
  }
  for (const poll of polls) {
    poll.settle({
      epoch: state.term.epoch,
      jobs: assignmentsOf(poll.given, poll.session, state),
    });
  }
  return orphans;
}
