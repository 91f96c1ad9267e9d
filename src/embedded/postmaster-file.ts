import { readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf } from './embedded-failure.js';

/** What a running server says about itself in `postmaster.pid`. */
interface PostmasterFile {
  readonly pid: number;
  readonly port: number | null;
  readonly ready: boolean;
}

/** Above every process number that systems give out, so no process ever has it. */
const NO_PROCESS = 2 ** 31 - 1;

/** Understands the text of `postmaster.pid`: process, folder, start, port, socket folder, address, memory, status. */
export function parsePostmasterFile(text: string): PostmasterFile | null {
  const lines = text.split('\n').map((line) => line.trim());
  // A negative number is a server in single-user mode.
  const pid = Math.abs(Number(lines[0]));
  if (!Number.isSafeInteger(pid) || pid === 0) return null;
  const port = Number(lines[3]);
  return { pid, port: port > 0 ? port : null, ready: lines[7] === 'ready' };
}

/** The file of a server folder: null when there is none, `damaged` when a power cut left it empty or torn. */
export async function readPostmasterFile(pgdata: string): Promise<PostmasterFile | 'damaged' | null> {
  try {
    return parsePostmasterFile(await readFile(pathIn(pgdata), 'utf8')) ?? 'damaged';
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Makes the file of a server that is gone harmless. Its process number may belong to a stranger by now, or to
 * a dead process that nobody has cleared away; Postgres would take either for a server and refuse to start.
 * The file is kept where it can be understood, not removed: it also names the shared memory of the old
 * server, by which Postgres finds out whether children of that server are still at work on the data.
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
