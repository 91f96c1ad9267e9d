import { open, rename, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { giveToOwnerOf } from './server-home.js';

/** What the server says goes straight to a file, so that it can go on speaking when the program is killed. */

const LOG_FILE = 'postgres.log';
const KEPT_BYTES = 8 * 1024 * 1024;
const CHECK_EVERY_MS = 60_000;
const TAIL_BYTES = 4 * 1024;

export interface ServerLog {
  readonly path: string;
  /** The number of bytes when this start began; what follows is about this start. */
  readonly beginning: number;
}

/** Makes the log file ready for a start; one that has grown is put aside as `postgres.log.old`. */
export async function openLog(dataFolder: string): Promise<ServerLog> {
  const path = join(dataFolder, LOG_FILE);
  if ((await sizeOf(path)) > KEPT_BYTES) await rename(path, `${path}.old`);
  const file = await open(path, 'a', 0o600);
  await file.close();
  await giveToOwnerOf(dataFolder, path);
  return { path, beginning: await sizeOf(path) };
}

/** The last lines that the server wrote since this start began. */
export async function tailOf(log: ServerLog): Promise<string> {
  const size = await sizeOf(log.path);
  const from = Math.max(size < log.beginning ? 0 : log.beginning, size - TAIL_BYTES);
  return (await readFrom(log.path, from, size - from)).trim();
}

/**
 * Keeps the file from growing without end until the signal aborts. The server appends, so the file can be cut
 * under its hands.
 */
export async function keepSmall(log: ServerLog, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(CHECK_EVERY_MS, undefined, { ref: false, signal }).catch(() => {});
    // A log that cannot be cut now (a full disk) is tried again a minute later.
    await cut(log).catch(() => {});
  }
}

async function cut(log: ServerLog): Promise<void> {
  const size = await sizeOf(log.path);
  if (size <= KEPT_BYTES) return;
  const tail = await readFrom(log.path, size - KEPT_BYTES, KEPT_BYTES);
  await writeFile(`${log.path}.old`, tail, { mode: 0o600 });
  await truncate(log.path);
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => null))?.size ?? 0;
}

async function readFrom(path: string, position: number, length: number): Promise<string> {
  const file = await open(path, 'r');
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await file.close();
  }
}
