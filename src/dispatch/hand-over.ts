import { assignmentsOf, type Handed } from './assignment.js';
import type { LeaderState } from './leader-state.js';
import type { Running } from './running.js';
import type { Poll } from './worker-session.js';

/** A claim that was committed, and the poll it was made for. */
export interface Claimed extends Handed {
  readonly poll: Poll;
}

/**
 * From so many kibibytes on an answer takes nothing more: it is put together, sent and read in one piece, while
 * everything else waits. The worker asks again for the rest.
 */
export const MAX_ANSWER_KIB = 1_024;

/**
 * Gives claimed jobs to the workers they were claimed for. To be called after the commit, never before. Answers
 * with those that nobody was handed, because the session or the poll ended while the claim was made: their claims
 * are to be given back, once nobody has the turn of their jobs.
 */
export function handOver(state: LeaderState, claimed: readonly Claimed[]): Running[] {
  const polls = new Set<Poll>();
  const orphans: Running[] = [];
  for (const each of claimed) {
    const { running, poll } = each;
    state.running.set(running.id, running);
    poll.session.running.add(running);
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
