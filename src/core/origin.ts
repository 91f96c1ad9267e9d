/**
 * Origins of http targets: scheme, host and port of the URL, such as `https://example.com`. Each has a backlog of its own, so
 * that one that is paused, down or at its limit holds up no other.
 */

/** How many backlogs a tenant's origins share that are beyond what it may have of its own. */
export const ORIGIN_BUCKETS = 64;

const BUCKET = /^bucket:(0|[1-9]\d?)$/;

/** The origin of a URL; empty for a text that is none. */
export function originOfUrl(url: string): string {
  try {
    return new URL(url).origin;
  } catch {
    return '';
  }
}

/** The name of the backlog that an origin shares with others. It is the same on every node. */
export function bucketOfOrigin(origin: string): string {
  // FNV-1a, as for lanes; the high bits are mixed in because a remainder by a power of two would drop them.
  let hash = 0x811c9dc5;
  for (let i = 0; i < origin.length; i++) hash = Math.imul(hash ^ origin.charCodeAt(i), 0x01000193);
  return `bucket:${((hash >>> 16) ^ (hash & 0xffff)) % ORIGIN_BUCKETS}`;
}

/** Whether the name is that of a backlog which origins share. */
export function isOriginBucket(name: string): boolean {
  const match = BUCKET.exec(name);
  return match !== null && Number(match[1]) < ORIGIN_BUCKETS;
}

/** Whether a text names an origin, or a backlog that origins share, exactly as it is kept. */
export function isOriginName(name: string): boolean {
  if (isOriginBucket(name)) return true;
  return /^https?:\/\//.test(name) && originOfUrl(name) === name;
}
