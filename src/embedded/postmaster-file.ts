import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from './embedded-failure.js';

/** The content of `postmaster.pid`, in which a running server describes itself. */
interface PostmasterFile {
  readonly pid: number;
  readonly port: number | null;
  readonly ready: boolean;
}

/** Larger than any process id that systems assign. */
const NO_PROCESS = 2 ** 31 - 1;

/** Parses `postmaster.pid`; its lines are process, folder, start, port, socket folder, address, memory, status. */
export function parsePostmasterFile(text: string): PostmasterFile | null {
  const lines = text.split('\n').map((line) => line.trim());
  // A negative number is a server in single-user mode.
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isSafeInteger(pid) || pid === 0) return null;
  const port = Number(lines[3]);
  return { pid, port: port > 0 ? port : null, ready: lines[7] === 'ready' };
}

/** Reads the file of a server: null when there is none, `damaged` when a power cut left it empty or incomplete. */
export async function readPostmasterFile(pgdata: string): Promise<PostmasterFile | 'damaged' | null> {
  try {
    return parsePostmasterFile(await readFile(pathIn(pgdata), 'utf8')) ?? 'damaged';
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Replaces the process id in the file of a server that is gone. The id may belong to another process by now, or to a
 * zombie; Postgres would take either for a running server and refuse to start. The file is not removed unless it is
 * damaged: it also names the old server's shared memory, by which Postgres finds out whether children of that server
 * still work on the data.
 */
export async function disownPostmasterFile(pgdata: string): Promise<void> {
  const file = await readPostmasterFile(pgdata);
  if (file === null) return;
  if (file === 'damaged') {
    await rm(pathIn(pgdata), { force: true });
    return;
  }
  const text = await readFile(pathIn(pgdata), 'utf8');
  await writeFile(pathIn(pgdata), text.replace(/^-?\d+/, String(NO_PROCESS)));
}

function pathIn(pgdata: string): string {
  return join(pgdata, 'postmaster.pid');
}
