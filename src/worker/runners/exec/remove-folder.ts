import { randomUUID } from 'node:crypto';
import { chmod, opendir, rename, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Removes the folder of a program that has ended, whatever it has left there: folders nested deeper than a path may be long, more
 * files than a list of them has room in memory, and folders that it has closed to its own user. Throws if something stays.
 */
export async function removeFolder(path: string): Promise<void> {
  // What is moved up while the folder is read may not be seen in this round.
  while (!(await isRemoved(path))) await emptyOnce(path);
}

async function isRemoved(path: string): Promise<boolean> {
  try {
    await rmdir(path);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return true;
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return false;
    throw error;
  }
}

/** Each folder in it gives its own folders to it before it is removed, so that no path gets longer. */
async function emptyOnce(path: string): Promise<void> {
  for await (const entry of await opened(path)) {
    const at = join(path, entry.name);
    if (!entry.isDirectory()) await unlink(at);
    else if (!(await isRemoved(at))) await flatten(at, path);
  }
}

async function flatten(path: string, into: string): Promise<void> {
  for await (const entry of await opened(path)) {
    const at = join(path, entry.name);
    if (!entry.isDirectory()) await unlink(at);
    else {
      // A folder that is closed to its owner cannot be moved.
      await chmod(at, 0o700);
      await rename(at, join(into, randomUUID()));
    }
  }
}

async function opened(path: string) {
  await chmod(path, 0o700);
  return opendir(path);
}
