/** So many lanes a queue has for its keys: each takes memory in the leader, however many keys there are. */
const LANES = 4_095;

/**
 * The lane of a concurrency key: zero without one, else by a hash. Lanes keep the jobs of a saturated key apart from
 * nearly all others; those that share a lane may wait for each other, and never share a limit.
 */
export function laneOf(concurrencyKey: string | null): number {
  if (concurrencyKey === null) return 0;
  // FNV-1a: short, even enough, and the same on every node.
  let hash = 0x811c9dc5;
  for (let i = 0; i < concurrencyKey.length; i++) {
    hash = Math.imul(hash ^ concurrencyKey.charCodeAt(i), 0x01000193);
  }
  return 1 + ((hash >>> 0) % LANES);
}
