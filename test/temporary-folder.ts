import { readFileSync, statfsSync } from 'node:fs';
import { chmod, mkdtemp, readdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeEmbeddedPostgres } from '../src/embedded/embedded-postgres.js';

const PREFIX = 'punctual-test-';
const ABANDONED_AFTER_MS = 10 * 60_000;

const MEMORY = '/dev/shm';
const GIGABYTE = 1024 ** 3;

/**
 * Where the folders are: in memory if there is a lot of it, because tests make hundreds of databases of hundreds of files,
 * and no disk takes that lightly. No test cuts the power: what a killed process has written is there in memory as well.
 */
const PARENT = isRoomy(MEMORY) ? MEMORY : tmpdir();

/** Whether a folder is a file system in memory with room to spare, from which programs may be run. */
function isRoomy(folder: string): boolean {
  try {
    const mounts = readFileSync('/proc/self/mounts', 'utf8').split('\n');
    const [, , type, options] = mounts.map((line) => line.split(' ')).find(([, at]) => at === folder) ?? [];
    const { bavail, bsize } = statfsSync(folder);
    const hasRoom = bavail * bsize > 4 * GIGABYTE && process.availableMemory() > 8 * GIGABYTE;
    return type === 'tmpfs' && !options!.split(',').includes('noexec') && hasRoom;
  } catch {
    return false;
  }
}

/** A new folder that the server's account can enter when the tests run as root. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(PARENT, PREFIX));
  await chmod(folder, 0o711);
  return folder;
}

/**
 * Ends servers and removes folders that killed test runs left behind. Folders of runs that are under way are
 * held by their lock, and young ones may not be locked yet.
 */
export async function removeAbandonedFolders(): Promise<void> {
  for (const name of await readdir(PARENT)) {
    if (!name.startsWith(PREFIX)) continue;
    const folder = join(PARENT, name);
    const age = Date.now() - ((await stat(folder).catch(() => null))?.mtimeMs ?? Date.now());
    // Another user's folder, or one in use, is none of ours to remove.
    if (age > ABANDONED_AFTER_MS) await removeEmbeddedPostgres(folder).catch(() => {});
  }
}
