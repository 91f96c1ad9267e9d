import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, realpath, rm, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { makeDataFolder } from '../host/data-folder.js';
import { lockFolder } from '../host/folder-lock.js';
import { type Account, may, runsAsRoot } from './account.js';
import { codeOf, embeddedFailure, explain } from './embedded-failure.js';
import type { ServerState } from './state-file.js';

/**
 * The home of the server's files. Normally that is the data folder. When root runs the program in a folder that only
 * root may enter, the server's account cannot reach it; then the files are in a folder of their own below
 * `/var/lib/punctual`, whose name is stored in the data folder.
 */

/** The parent of homes outside the data folder; unlike /tmp it survives a reboot. */
export const REACHABLE_FOLDER = '/var/lib/punctual';

/** Creates the data folder if necessary and returns its real path, so that one folder has one name. */
export async function openDataFolder(dataFolder: string, account: Account | null): Promise<string> {
  try {
    // The server's account must pass through root's folder; the files in it are closed to others.
    const isNew = await makeDataFolder(dataFolder, account === null ? 0o700 : 0o711);
    const path = await realpath(dataFolder);
    if (isNew && account !== null) await chmod(path, 0o711);
    if (!(await may(null, '-w', path)))
      throw Object.assign(new Error('permission denied'), { code: 'EACCES' });
    return path;
  } catch (error) {
    throw explain(error, `The data folder ${dataFolder} cannot be used`);
  }
}

/** The home that the state names, if it exists; null when there is none yet. */
export async function rememberedHome(dataFolder: string, state: ServerState | null): Promise<string | null> {
  if (state === null) return (await exists(join(dataFolder, 'postgres'))) ? dataFolder : null;
  if (!isAbsolute(state.home)) return dataFolder;
  if (await exists(state.home)) return state.home;
  throw embeddedFailure(
    `The database of ${dataFolder} was kept in ${state.home}, which is no longer there. ` +
      `Restore that folder, or remove ${join(dataFolder, 'postgres.json')} to start with an empty database.`,
  );
}

/** Chooses the home of a new server: the data folder if the account can use it, else a new folder that it can. */
export async function chooseHome(
  dataFolder: string,
  account: Account | null,
  reachableFolder: string,
): Promise<string> {
  const obstacle = await obstacleIn(dataFolder, account);
  if (obstacle === null) return dataFolder;
  if (account === null) {
    throw embeddedFailure(
      `The data folder ${dataFolder} cannot hold a database: ${obstacle}. Choose another with --data.`,
    );
  }
  const home = join(reachableFolder, randomBytes(8).toString('hex'));
  try {
    await mkdir(home, { recursive: true, mode: 0o711 });
    for (const folder of [dirname(home), home]) await chmod(folder, 0o711);
  } catch (error) {
    throw explain(
      error,
      `${dataFolder} cannot hold the database (${obstacle}), and neither can ${reachableFolder}`,
    );
  }
  const again = await obstacleIn(home, account);
  if (again === null) return home;
  await rm(home, { recursive: true, force: true });
  throw embeddedFailure(
    `Neither ${dataFolder} (${obstacle}) nor ${reachableFolder} (${again}) can hold a database. ` +
      `Choose a folder with --data that the account ${account.name} can enter.`,
  );
}

/** Why a folder cannot hold a database; null if it can. This is tried out, because shared folders and containers differ. */
async function obstacleIn(folder: string, account: Account | null): Promise<string | null> {
  let trial: string | null = null;
  try {
    trial = await mkdtemp(join(folder, 'postgres.trial-'));
    await giveTo(trial, account);
    const { mode, uid } = await stat(trial);
    if ((mode & 0o777) !== 0o700) return 'its file system does not keep permissions';
    if (account !== null && uid !== account.uid) return 'its file system does not keep owners';
    if (!(await may(account, '-w', trial))) return `${account?.name ?? 'this user'} may not enter it`;
    return null;
  } catch (error) {
    return codeOf(error) ?? String(error);
  } finally {
    if (trial !== null) await rm(trial, { recursive: true, force: true });
  }
}

/** Makes the account the owner of a folder, with no access for others. */
export async function giveTo(folder: string, account: Account | null): Promise<void> {
  await chmod(folder, 0o700);
  if (account !== null) await chown(folder, account.uid, account.gid);
}

/** Gives a file that root created to the owner of its folder, who may start the next server without root. */
export async function giveToOwnerOf(folder: string, file: string): Promise<void> {
  if (!runsAsRoot()) return;
  const { uid, gid } = await stat(folder);
  await chown(file, uid, gid);
}

/** Whether a path exists. */
export async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

/** Locks a folder of the server for this process and returns the function that unlocks it; the error names the holder. */
export function lockServerFolder(folder: string): () => void {
  return lockFolder(folder, 'postgres.lock.', ({ pid, since }) => {
    const who = pid === process.pid ? 'this process itself' : `process ${pid}`;
    return embeddedFailure(
      `The folder ${folder} is in use by ${who} since ${since}. Stop that one first, or choose another folder with --data.`,
    );
  });
}
