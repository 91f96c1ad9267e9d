/**
 * Fences that tests disable one at a time, to prove that something breaks without them. Nothing here is for users:
 * unless PUNCTUAL_TEST is 1, every fence stands. `test/fence-proofs.ts` names the proof of each.
 */
export const FENCES = [
  /** A leader's write is refused when its term is over. */
  'term',
  /** A term is identified by its holder too, because a promoted replica may repeat an epoch. */
  'holder',
  /** A takeover checks again, under its lock, that the term is over. */
  'takeover',
  /** A leader that does not trust its term any more tells no worker that it is unknown. */
  'trust',
  /** A claim takes only a live job, and only under its next fence. */
  'claim-join',
  /** A claim takes no step of a workflow that is on hold. */
  'held-workflow',
  /** A job is handed over from memory only if its row has not changed since it was submitted. */
  'unedited',
  /** A result counts only under the fence of the attempt that runs. */
  'attempt',
  /** The statement that ends an attempt checks the fence against the claim. */
  'claimed-fence',
  /** The statement that adds steps to a workflow checks the fence of the attempt that adds them against the claim. */
  'adding-fence',
  /** A worker is told that its result is accepted only after the commit. */
  'commit-first',
  /** A leader that does not know the outcome of its write takes a new term. */
  'in-doubt',
  /** An attempt is lost only when its session dies, never because a heartbeat does not list it. */
  'lost-by-death',
  /** An attempt that was never acknowledged is taken back only when its worker confirms that it did not start. */
  'revoke-confirmed',
  /** A new leader gives every session a full timeout. */
  'full-timeout',
  /** A leader compares only heartbeats that echo its epoch with its claims. */
  'heartbeat-epoch',
  /** A worker drops answers of a lower epoch than it has seen. */
  'answer-epoch',
  /** A worker drops answers to a session that it has replaced. */
  'answer-session',
  /** A worker starts an attempt once, however often it is offered. */
  'start-once',
  /** An order to stop names the fence, and so never stops a later attempt. */
  'stop-fence',
] as const;

/** The name of a fence. */
export type Fence = (typeof FENCES)[number];

const removed = new Set(
  process.env.PUNCTUAL_TEST === '1' ? (process.env.PUNCTUAL_TEST_WITHOUT ?? '').split(',') : [],
);

/** Whether a fence stands; always true outside of tests about the fences. */
export function stands(fence: Fence): boolean {
  return !removed.has(fence);
}
