/**
 * The lane of a concurrency key: zero without one, else a hash that is never zero. Lanes keep the jobs of a
 * saturated key apart from all others; that two keys may share a lane costs them a little, and never a limit.
 */
export function laneOf(concurrencyKey: string | null): number {
  if (concurrencyKey === null) return 0;
  // FNV-1a: short, even enough, and the same on every node.
  let hash = 0x811c9dc5;
  for (let i = 0; i < concurrencyKey.length; i++) {
    hash = Math.imul(hash ^ concurrencyKey.charCodeAt(i), 0x01000193);
  }
  return hash === 0 ? 1 : hash | 0;
}
