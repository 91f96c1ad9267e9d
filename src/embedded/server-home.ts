import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, mkdtemp, realpath, rm, stat } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { lockFolder } from '../core/folder-lock.js';
import { type Account, may, runsAsRoot } from './account.js';
import { codeOf, embeddedFailure, explain } from './embedded-failure.js';
import type { ServerState } from './state-file.js';

/**
 * Where the server's files live. Normally that is the data folder. When root runs the program below a
 * folder that only root may enter, the server's account could not reach them there, so they live in a
 * folder of their own under `/var/lib/punctual` and the data folder remembers which.
 */

/** The place for servers whose data folder their account cannot reach; it outlives reboots, unlike /tmp. */
export const REACHABLE_FOLDER = '/var/lib/punctual';

/** Makes the data folder if need be and gives its true path, so that one folder has one name. */
export async function openDataFolder(dataFolder: string, account: Account | null): Promise<string> {
  try {
    // Root's folder lets others pass through, because the server's account must; its files are closed.
    const made = await mkdir(dataFolder, { recursive: true, mode: account === null ? 0o700 : 0o711 });
    const path = await realpath(dataFolder);
    if (made !== undefined && account !== null) await chmod(path, 0o711);
    if (!(await may(null, '-w', path)))
      throw Object.assign(new Error('permission denied'), { code: 'EACCES' });
    return path;
  } catch (error) {
    throw explain(error, `The data folder ${dataFolder} cannot be used`);
  }
}

/** The folder that the state points at, checked to be there; null when nothing is remembered. */
export async function rememberedHome(dataFolder: string, state: ServerState | null): Promise<string | null> {
  if (state === null) return (await exists(join(dataFolder, 'postgres'))) ? dataFolder : null;
  if (!isAbsolute(state.home)) return dataFolder;
  if (await exists(state.home)) return state.home;
  throw embeddedFailure(
    `The database of ${dataFolder} was kept in ${state.home}, which is no longer there. ` +
      `Restore that folder, or remove ${join(dataFolder, 'postgres.json')} to start with an empty database.`,
  );
}

/** A home for a new server: the data folder where the account can work in it, else a new folder that it can reach. */
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

/** Why no database can live in a folder: tried out, because shared folders and containers have rules of their own. */
async function obstacleIn(folder: string, account: Account | null): Promise<string | null> {
  let trial: string | null = null;
  try {
    trial = await mkdtemp(join(folder, 'postgres.trial-'));
    await give(trial, account);
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

/** Hands a folder to the account that works in it, closed to everybody else. */
export async function give(folder: string, account: Account | null): Promise<void> {
  await chmod(folder, 0o700);
  if (account !== null) await chown(folder, account.uid, account.gid);
}

/** Leaves a file that root made to the owner of the folder, who may start the next server without root. */
export async function giveToOwnerOf(folder: string, file: string): Promise<void> {
  if (!runsAsRoot()) return;
  const { uid, gid } = await stat(folder);
  await chown(file, uid, gid);
}

/** Whether there is anything at a path. */
export async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null)) !== null;
}

/** Locks a folder of the server for this process and gives the way to let go of it; fails naming who has it. */
export function lockServerFolder(folder: string): () => void {
  return lockFolder(folder, 'postgres.lock.', ({ pid, since }) => {
    const who = pid === process.pid ? 'this process itself' : `process ${pid}`;
    return embeddedFailure(
      `The folder ${folder} is in use by ${who} since ${since}. Stop that one first, or choose another folder with --data.`,
    );
  });
}
