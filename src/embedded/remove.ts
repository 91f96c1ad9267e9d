import { realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { rememberedHome } from './home.js';
import { endLeftBehind, findLeftBehind } from './left-behind.js';
import { lockServerFolder } from './server-lock.js';
import { readState } from './state-file.js';

/**
 * Removes a data folder and the server's files, wherever they are. A server that was left behind is ended
 * first; a folder in use is refused.
 */
export async function removeEmbeddedPostgres(path: string): Promise<void> {
  const dataFolder = await realpath(path);
  const locks = [lockServerFolder(dataFolder)];
  try {
    const home = await rememberedHome(dataFolder, await readState(dataFolder));
    if (home !== null) {
      if (home !== dataFolder) locks.push(lockServerFolder(home));
      const pgdata = await realpath(join(home, 'postgres')).catch(() => home);
      const leftBehind = await findLeftBehind(pgdata);
      if (leftBehind !== null) await endLeftBehind(leftBehind);
      await rm(home, { recursive: true, force: true });
    }
    await rm(dataFolder, { recursive: true, force: true });
  } catch (error) {
    for (const unlock of locks) letGo(unlock);
    throw error;
  }
}

/** The file of a lock may be gone with its folder. */
function letGo(unlock: () => void): void {
  try {
    unlock();
  } catch {
    // What is removed needs no lock.
  }
}
