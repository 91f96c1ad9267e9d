import { readFile, realpath, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type Account, chooseAccount, may, ownerOf, runCommand } from './account.js';
import { embeddedFailure } from './embedded-failure.js';
import { endLeftBehind, findLeftBehind } from './left-behind.js';
import { createDatabaseFiles, removeDrafts, resetPassword } from './new-database.js';
import { findBinaryPackage, type PostgresBinaries, prepareBinaries } from './postgres-binaries.js';
import { disownPostmasterFile } from './postmaster-file.js';
import { chooseHome, exists, lockServerFolder, openDataFolder, rememberedHome } from './server-home.js';
import { freePort } from './server-settings.js';
import { randomPassword, readState, type ServerState, writeState } from './state-file.js';

/** A data folder that this process has locked, with a complete database in it, ready for a server to start. */
export interface ServerFolder {
  readonly dataFolder: string;
  readonly home: string;
  readonly pgdata: string;
  readonly account: Account | null;
  readonly binaries: PostgresBinaries;
  readonly state: ServerState;
  /** Releases the folder for other processes. */
  release(): Promise<void>;
}

/** Locks a data folder and creates what is missing in it. */
export async function openServerFolder(
  folder: string,
  reachableFolder: string,
  log: (line: string) => void,
): Promise<ServerFolder> {
  const installed = await findBinaryPackage();
  const newAccount = await chooseAccount();
  const dataFolder = await openDataFolder(folder, newAccount);
  const locks = [lockServerFolder(dataFolder)];
  const release = async () => {
    for (const unlock of locks.splice(0).reverse()) unlock();
  };
  try {
    const remembered = await readState(dataFolder);
    const home =
      (await rememberedHome(dataFolder, remembered)) ??
      (await chooseHome(dataFolder, newAccount, reachableFolder));
    // Copies of a data folder name the same home in their state, so the home needs a lock of its own.
    if (home !== dataFolder) locks.push(lockServerFolder(home));
    await removeDrafts(home);
    const path = join(home, 'postgres');
    const present = await exists(path);
    // The files may have been moved to another disk and linked; a server is identified by its real path.
    const pgdata = present ? await realpath(path) : path;
    const account = present ? await ownerOf(pgdata) : newAccount;
    const binaries = await prepareBinaries(installed, home, account);
    const state = await completeState(dataFolder, remembered ?? (await firstState(dataFolder, home)));
    if (!present) {
      log(`Making a new database in ${pgdata}`);
      await createDatabaseFiles(binaries, home, account, state.password);
    } else {
      await checkDatabase(pgdata, account, binaries);
      if (remembered === null) await replacePassword(binaries, pgdata, account, state.password);
    }
    return { dataFolder, home, pgdata, account, binaries, state, release };
  } catch (error) {
    await release();
    throw error;
  }
}

/** The state is written before the database is created, so that no database has an unknown password. */
async function firstState(dataFolder: string, home: string): Promise<ServerState> {
  const state: ServerState = {
    home: home === dataFolder ? '.' : home,
    port: await freePort(null),
    password: randomPassword(),
    nodePassword: randomPassword(),
  };
  await writeState(dataFolder, state);
  return state;
}

/** Adds a password for the nodes' role to the state of an older version. */
async function completeState(dataFolder: string, state: ServerState): Promise<ServerState> {
  if (state.nodePassword !== '') return state;
  const complete: ServerState = { ...state, nodePassword: randomPassword() };
  await writeState(dataFolder, complete);
  return complete;
}

async function checkDatabase(
  pgdata: string,
  account: Account | null,
  binaries: PostgresBinaries,
): Promise<void> {
  if (account !== null) await handOver(pgdata, account);
  const version = Number((await readFile(join(pgdata, 'PG_VERSION'), 'utf8').catch(() => '')).trim());
  if (version === binaries.majorVersion) return;
  throw embeddedFailure(
    version > 0
      ? `The database in ${pgdata} was made by Postgres ${version}, and this program brings Postgres ` +
          `${binaries.majorVersion}. Use the program it was made with, or choose another folder with --data.`
      : `${pgdata} holds no database. Remove that folder if nothing in it is needed, or choose another with --data.`,
  );
}

/** Gives files that root copied or restored back to the server's account. */
async function handOver(pgdata: string, account: Account): Promise<void> {
  let output = '';
  if ((await stat(pgdata)).uid === 0) {
    const script = 'chown -R "$1" "$2" && chmod 700 "$2"';
    const args = ['-c', script, 'sh', `${account.uid}:${account.gid}`, pgdata];
    output = (await runCommand('/bin/sh', args, { account: null, cwd: '/' })).output.trim();
  }
  if (await may(account, '-w', pgdata)) return;
  throw embeddedFailure(
    `The account ${account.name}, which runs Postgres because root may not, cannot work in ${pgdata}. ` +
      `Let it enter the folders above (chmod a+x). ${output}`.trim(),
  );
}

async function replacePassword(
  binaries: PostgresBinaries,
  pgdata: string,
  account: Account | null,
  password: string,
): Promise<void> {
  const leftBehind = await findLeftBehind(pgdata);
  if (leftBehind !== null) await endLeftBehind(leftBehind);
  await disownPostmasterFile(pgdata);
  await resetPassword(binaries, pgdata, account, password);
}
