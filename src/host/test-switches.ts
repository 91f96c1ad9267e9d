/**
 * Fences that tests take out one at a time, to prove that something breaks without them. Nothing here is for users:
 * unless PUNCTUAL_TEST is 1, every fence stands, whatever else the environment says. `test/fence-proofs.ts` names the
 * proof of each.
 */
export const FENCES = [
  /** A leader's write is refused when its term is over. */
  'term',
  /** A term is known by its holder too: a promoted replica may repeat an epoch. */
  'holder',
  /** A takeover looks again under its lock whether the term is over. */
  'takeover',
  /** A leader that cannot be sure to lead any more tells no worker that it is unknown. */
  'trust',
  /** A claim takes only a live job, and only under its next fence. */
  'claim-join',
  /** A job is handed over from memory only while its row is as it was submitted. */
  'unedited',
  /** A result counts only under the fence of the attempt that runs. */
  'attempt',
  /** The table itself ends an attempt only under the fence that is claimed. */
  'claimed-fence',
  /** A result is answered only when it is stored. */
  'commit-first',
  /** A leader that does not know what became of its write takes a new term. */
  'in-doubt',
  /** An attempt is lost only when its session dies, never because a heartbeat does not list it. */
  'lost-by-death',
  /** An attempt that was never acknowledged is taken back only when its worker confirms that it never began. */
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

export type Fence = (typeof FENCES)[number];

const removed = new Set(
  process.env.PUNCTUAL_TEST === '1' ? (process.env.PUNCTUAL_TEST_WITHOUT ?? '').split(',') : [],
);

/** Whether a fence is in place, which it always is outside of tests about the fences. */
export function stands(fence: Fence): boolean {
  return !removed.has(fence);
}
