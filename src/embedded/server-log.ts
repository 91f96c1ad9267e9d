import { open, rename, stat, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { giveToOwnerOf } from './server-home.js';

/** The server writes its log directly to a file, so that it can go on when the program is killed. */

const LOG_FILE = 'postgres.log';
const KEPT_BYTES = 8 * 1024 * 1024;
const CHECK_EVERY_MS = 60_000;
const TAIL_BYTES = 4 * 1024;

export interface ServerLog {
  readonly path: string;
  /** The size of the file when this start began; what follows belongs to this start. */
  readonly beginning: number;
}

/** Prepares the log file for a start; a large one is renamed to `postgres.log.old`. */
export async function openLog(dataFolder: string): Promise<ServerLog> {
  const path = join(dataFolder, LOG_FILE);
  if ((await sizeOf(path)) > KEPT_BYTES) await rename(path, `${path}.old`);
  const file = await open(path, 'a', 0o600);
  await file.close();
  await giveToOwnerOf(dataFolder, path);
  return { path, beginning: await sizeOf(path) };
}

/** The last lines that the server has written since this start. */
export async function tailOf(log: ServerLog): Promise<string> {
  const size = await sizeOf(log.path);
  const from = Math.max(size < log.beginning ? 0 : log.beginning, size - TAIL_BYTES);
  return (await readFrom(log.path, from, size - from)).trim();
}

/**
 * Limits the size of the file until the signal aborts. The server opened it for appending, so it can be truncated
 * while the server runs.
 */
export async function keepSmall(log: ServerLog, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(CHECK_EVERY_MS, undefined, { ref: false, signal }).catch(() => {});
    // If that fails, for example on a full disk, the next round tries again.
    await truncateLog(log).catch(() => {});
  }
}

async function truncateLog(log: ServerLog): Promise<void> {
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
