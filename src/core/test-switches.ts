/**
 * Fences that the fault harness takes out one at a time, to prove that its scenarios fail without them. Nothing
 * here is for users: unless PUNCTUAL_TEST is 1, every fence stands, whatever else the environment says.
 */
export const FENCES = [
  /** A leader's write is refused when its term is over. */
  'term',
  /** A result counts only under the fence of the attempt that runs. */
  'attempt',
  /** A leader that does not know what became of its write takes a new term. */
  'in-doubt',
  /** An attempt is lost only when its session dies, never because a heartbeat does not list it. */
  'lost-by-death',
] as const;

export type Fence = (typeof FENCES)[number];

const removed = new Set(
  process.env.PUNCTUAL_TEST === '1' ? (process.env.PUNCTUAL_TEST_WITHOUT ?? '').split(',') : [],
);

/** Whether a fence is in place, which it always is outside of tests about the fences. */
export function stands(fence: Fence): boolean {
  return !removed.has(fence);
}
