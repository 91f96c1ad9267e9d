import { randomFillSync } from 'node:crypto';

/**
 * UUIDv7: the first 48 bits are the time in milliseconds, so that ids sort by creation and a range of time is a range
 * of ids. Within a millisecond the next 12 bits are a counter, so that the ids of one process are strictly ascending.
 */

const POOL_BYTES = 8 * 1024;
const pool = Buffer.allocUnsafe(POOL_BYTES);
let offset = POOL_BYTES;
let lastMs = -1;
let counter = 0;

/** A buffer for the next id: decoding it costs a fraction of concatenating strings. */
const text = Buffer.from('00000000-0000-7000-8000-000000000000', 'latin1');
const HEX = Buffer.from('0123456789abcdef', 'latin1');

function writeByte(at: number, byte: number): void {
  text[at] = HEX[byte >> 4]!;
  text[at + 1] = HEX[byte & 0xf]!;
}

/** A new id for the given moment (milliseconds on the database's clock). */
export function uuidv7(atMs: number): string {
  if (offset + 10 > POOL_BYTES) {
    randomFillSync(pool);
    offset = 0;
  }
  const seed = ((pool[offset]! << 8) | pool[offset + 1]!) & 0x3ff;
  // If the time stands still or steps back, the last millisecond is used again, so that ids stay ascending.
  if (atMs > lastMs) {
    writeTime(atMs);
    counter = seed;
  } else {
    counter += 1;
    if (counter > 0xfff) {
      writeTime(lastMs + 1);
      counter = seed;
    }
  }
  text[15] = HEX[counter >> 8]!;
  writeByte(16, counter & 0xff);
  writeByte(19, (pool[offset + 2]! & 0x3f) | 0x80);
  writeByte(21, pool[offset + 3]!);
  for (let i = 0; i < 6; i++) writeByte(24 + 2 * i, pool[offset + 4 + i]!);
  offset += 10;
  return text.toString('latin1');
}

function writeTime(atMs: number): void {
  lastMs = atMs;
  const time = atMs.toString(16).padStart(12, '0');
  text.write(time.slice(0, 8), 0, 'latin1');
  text.write(time.slice(8), 9, 'latin1');
}

/** Lets the next id lie before the ids so far. This is for tests that follow, in the same process, others that moved time. */
export function forgetUuids(): void {
  lastMs = -1;
}

/** The smallest UUIDv7 of a moment: the lower bound of a range of ids. */
export function firstUuidAt(atMs: number): string {
  const time = Math.max(0, Math.floor(atMs)).toString(16).padStart(12, '0');
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000000`;
}

/** The moment a UUIDv7 was made, in milliseconds. */
export function uuidTime(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** Below and above every UUID that is in use. */
export const FIRST_UUID = '00000000-0000-0000-0000-000000000000';
export const LAST_UUID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** The UUID that follows the given one. */
export function nextUuid(id: string): string {
  const next = (BigInt(`0x${id.replaceAll('-', '')}`) + 1n).toString(16).padStart(32, '0');
  return next.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether a text is a UUID in the form that Postgres prints. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}
