import { addAll } from '../core/long-lists.js';
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
 * of their jobs are free. A poll whose key is being read again, because some key was changed, waits for that with its jobs;
 * `onOrphans` is called with those that it does not get.
 */
export function handOver(
  state: LeaderState,
  claimed: readonly Claimed[],
  onOrphans: (orphans: readonly Running[]) => void,
): Running[] {
  const polls = new Set<Poll>();
  const orphans: Running[] = [];
  let last: Poll | undefined;
  let lastIsThere = false;
  for (const each of claimed) {
    const { running, poll } = each;
    state.running.set(running.id, running);
    state.meters.claimed(running);
    poll.session.running.add(running);
    // Most jobs are for the poll of the one before.
    if (poll !== last) {
      last = poll;
      lastIsThere = isThere(state, poll);
      // Jobs that come while it waits, from the rest of a batch that was split, are handed over with the others.
      if (lastIsThere && !poll.isChecked) polls.add(poll);
    }
    if (lastIsThere) poll.given.push(each);
    else orphans.push(running);
  }
  const welcome: Poll[] = [];
  for (const poll of polls) {
    const isWelcome = poll.isWelcome();
    if (isWelcome === true) welcome.push(poll);
    else if (isWelcome === false) addAll(orphans, sendAway(state, poll));
    else void handOverLater(state, poll, isWelcome, onOrphans);
  }
  answer(state, welcome);
  return orphans;
}

function isThere(state: LeaderState, { settled, session }: Poll): boolean {
  return !settled && state.sessions.has(session.id);
}

/** A key that has ended gets nothing; its next request is told so. Answers with what the poll would have got. */
function sendAway(state: LeaderState, poll: Poll): Running[] {
  poll.settle({ epoch: state.term.epoch, jobs: [] });
  return poll.given.map(({ running }) => running);
}

function answer(state: LeaderState, polls: readonly Poll[]): void {
  if (state.events.isHeard) state.events.started(polls.flatMap(({ given }) => given));
  for (const poll of polls) {
    poll.settle({
      epoch: state.term.epoch,
      jobs: assignmentsOf(poll.given, poll.session, poll.limits, state),
    });
  }
}

/** The poll is given nothing else meanwhile. Its jobs are claimed, so a worker that dies loses them as it loses others. */
async function handOverLater(
  state: LeaderState,
  poll: Poll,
  welcome: Promise<boolean>,
  onOrphans: (orphans: readonly Running[]) => void,
): Promise<void> {
  poll.isChecked = true;
  const isWelcome = await welcome;
  poll.isChecked = false;
  if (state.isOver) return;
  if (isWelcome && isThere(state, poll)) return answer(state, [poll]);
  // One that was cancelled meanwhile is left to its worker, which is offered it and told to stop: given back, it would start.
  onOrphans(sendAway(state, poll).filter(({ cancelledAt }) => cancelledAt === null));
}
