import { createHash } from 'node:crypto';

/** Postgres cuts longer names off. */
const MOST_BYTES = 63;

/**
 * The database role that reads for people: see store/tenant-wall.ts. Each owner of tables has one of its own, because roles
 * belong to the whole server: with one for all, whoever owns one database could read the jobs in another by it.
 */
export function readerRoleOf(owner: string): string {
  const name = `punctual_reader_${owner}`;
  if (Buffer.byteLength(name) <= MOST_BYTES) return name;
  return `punctual_reader_${createHash('sha256').update(owner).digest('hex').slice(0, 32)}`;
}
