import { OwnAssignment } from './assignment.js';
import type { Running } from './running.js';
import type { Poll } from './session.js';
import type { LeaderState } from './state.js';

/** A claim that was committed, and the poll it was made for. */
export interface Claimed {
  readonly running: Running;
  readonly poll: Poll;
}

/**
 * Gives claimed jobs to the workers they were claimed for. To be called after the commit, never before. Answers
 * with those whose worker's session has ended meanwhile.
 */
export function handOver(state: LeaderState, claimed: readonly Claimed[]): Running[] {
  const polls = new Set<Poll>();
  const orphans: Running[] = [];
  for (const { running, poll } of claimed) {
    state.running.set(running.id, running);
    poll.session.running.set(running.id, running);
    poll.given.push(running);
    polls.add(poll);
    if (!state.sessions.has(poll.session.id)) orphans.push(running);
  }
  for (const poll of polls) {
    // A poll that ended meanwhile leaves its jobs unacknowledged; the next poll offers them again.
    poll.settle({
      epoch: state.term.epoch,
      jobs: poll.given.map((running) => new OwnAssignment(running, state.secret)),
    });
  }
  return orphans;
}
