import { chmod, mkdtemp, readdir, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeEmbeddedPostgres } from '../src/embedded/embedded-postgres.js';

const PREFIX = 'punctual-test-';
const ABANDONED_AFTER_MS = 10 * 60_000;

/** A new folder that the server's account can enter when the tests run as root. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), PREFIX));
  await chmod(folder, 0o711);
  return folder;
}

/**
 * Ends servers and removes folders that killed test runs left behind. Folders of runs that are under way are
 * held by their lock, and young ones may not be locked yet.
 */
export async function removeAbandonedFolders(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(PREFIX)) continue;
    const folder = join(tmpdir(), name);
    const age = Date.now() - ((await stat(folder).catch(() => null))?.mtimeMs ?? Date.now());
    // Another user's folder, or one in use, is none of ours to remove.
    if (age > ABANDONED_AFTER_MS) await removeEmbeddedPostgres(folder).catch(() => {});
  }
}
