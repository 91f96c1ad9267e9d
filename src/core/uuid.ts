import { randomFillSync } from 'node:crypto';

/**
 * UUIDv7: the first 48 bits are the time in milliseconds, so ids sort by creation and a range of time is a
 * range of ids. The next 12 bits count up within a millisecond so that one process makes them in order.
 */

const POOL_BYTES = 8 * 1024;
const pool = Buffer.allocUnsafe(POOL_BYTES);
let offset = POOL_BYTES;
let lastMs = -1;
let counter = 0;

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** A new id for the given moment (milliseconds on the database's clock). */
export function uuidv7(atMs: number): string {
  if (offset + 10 > POOL_BYTES) {
    randomFillSync(pool);
    offset = 0;
  }
  const seed = ((pool[offset]! << 8) | pool[offset + 1]!) & 0x3ff;
  // Time that stands still or steps back keeps the last millisecond, so the order of one process holds.
  if (atMs > lastMs) {
    lastMs = atMs;
    counter = seed;
  } else {
    counter += 1;
    if (counter > 0xfff) {
      lastMs += 1;
      counter = seed;
    }
  }
  const time = lastMs.toString(16).padStart(12, '0');
  const b = pool;
  const o = offset;
  offset += 10;
  return (
    `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}-` +
    `${HEX[(b[o + 2]! & 0x3f) | 0x80]}${HEX[b[o + 3]!]}-` +
    `${HEX[b[o + 4]!]}${HEX[b[o + 5]!]}${HEX[b[o + 6]!]}${HEX[b[o + 7]!]}${HEX[b[o + 8]!]}${HEX[b[o + 9]!]}`
  );
}

/** The smallest id a UUIDv7 of that moment can have: the lower end of a range of ids. */
export function firstUuidAt(atMs: number): string {
  const time = Math.max(0, Math.floor(atMs)).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
}

/** The moment a UUIDv7 was made, in milliseconds. */
export function uuidTime(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a text is a UUID in the form that Postgres prints. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
