import { realpath, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { embeddedFailure, explain, OWN_DATABASE } from './embedded-failure.js';
import { endLeftBehind, findLeftBehind, isUsable } from './left-behind.js';
import { DATABASE, ROLE } from './new-database.js';
import { NODE_ROLE, prepareNodeRole } from './node-role.js';
import { disownPostmasterFile } from './postmaster-file.js';
import { openServerFolder, type ServerFolder } from './server-folder.js';
import { lockServerFolder, REACHABLE_FOLDER, rememberedHome } from './server-home.js';
import { keepSmall, openLog, type ServerLog, tailOf } from './server-log.js';
import {
  becameReady,
  endServer,
  orderEnd,
  type Patience,
  type ServerProcess,
  spawnServer,
} from './server-process.js';
import { freePort, serverArguments } from './server-settings.js';
import { readState, writeState } from './state-file.js';

export interface EmbeddedPostgresOptions {
  /** The folder of the server and of the program that starts it; created on first use. */
  readonly dataFolder: string;
  /** Called with one line about each step that takes time. */
  readonly log?: (line: string) => void;
  /** Postgres settings that differ from those of `server-settings.ts`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Called when the server ends and was not stopped. */
  readonly onUnexpectedExit?: (detail: string) => void;
  /** The folder for the server's files when the account that runs Postgres for root cannot enter the data folder. */
  readonly reachableFolder?: string;
}

/** A running Postgres that belongs to this program. */
export interface EmbeddedPostgres {
  /** The address for nodes, with user and password; this user owns the objects in the database and has no other rights. */
  readonly url: string;
  /** The address for the server's superuser. */
  readonly administratorUrl: string;
  readonly port: number;
  /** The folder with the server's files; not the data folder if the server's account cannot enter that. */
  readonly home: string;
  /** Whether the server was left running by a killed program and was taken over. */
  readonly adopted: boolean;
  /** Shuts the server down and releases the folder. */
  stop(): Promise<void>;
}

const STOP_PATIENCE: Patience = { fastMs: 60_000, immediateMs: 10_000 };
const PORT_TRIES = 5;
const STRAGGLERS_GONE_WITHIN_MS = 20_000;
const STRAGGLERS_RETRY_MS = 250;

interface Running {
  readonly server: ServerProcess;
  readonly port: number;
  readonly adopted: boolean;
}

/**
 * Starts the embedded Postgres, or takes over the server that a killed program left running on the same folder. Two
 * programs never use a folder at the same time.
 */
export async function startEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const log = options.log ?? (() => {});
  const folder = await openFolder(options, log);
  try {
    const serverLog = await openLog(folder.dataFolder);
    const settings = options.settings ?? {};
    const running = (await adopt(folder, settings, log)) ?? (await start(folder, settings, serverLog, log));
    await prepareNodeRole(administratorUrlOf(folder, running.port), folder.state.nodePassword);
    return handle(folder, running, serverLog, options.onUnexpectedExit ?? (() => {}));
  } catch (error) {
    await folder.release();
    throw explain(error, 'The embedded Postgres could not be started');
  }
}

async function openFolder(options: EmbeddedPostgresOptions, log: Log): Promise<ServerFolder> {
  try {
    return await openServerFolder(options.dataFolder, options.reachableFolder ?? REACHABLE_FOLDER, log);
  } catch (error) {
    throw explain(error, `The data folder ${options.dataFolder} cannot be used`);
  }
}

function urlOf(role: string, password: string, port: number): string {
  return `postgres://${role}:${password}@127.0.0.1:${port}/${DATABASE}`;
}

function administratorUrlOf({ state }: ServerFolder, port: number): string {
  return urlOf(ROLE, state.password, port);
}

type Settings = Readonly<Record<string, string>>;
type Log = (line: string) => void;

async function adopt(folder: ServerFolder, settings: Settings, log: Log): Promise<Running | null> {
  const leftBehind = await findLeftBehind(folder.pgdata);
  if (leftBehind === null) return null;
  const { server, port } = leftBehind;
  if (port !== null) {
    const args = serverArguments(folder.pgdata, port, settings);
    if (await isUsable(folder.pgdata, args, administratorUrlOf(folder, port))) {
      log(`Taking over the database server that was left running (process ${server.pid})`);
      return { server, port, adopted: true };
    }
  }
  log(`Ending a database server that was left running (process ${server.pid})`);
  await endLeftBehind(leftBehind);
  return null;
}

async function start(
  folder: ServerFolder,
  settings: Settings,
  serverLog: ServerLog,
  log: Log,
): Promise<Running> {
  const begin = performance.now();
  let preferred: number | null = folder.state.port;
  for (let portTries = 1; ; ) {
    const port = await freePort(preferred);
    if (port !== folder.state.port) await writeState(folder.dataFolder, { ...folder.state, port });
    const args = serverArguments(folder.pgdata, port, settings);
    await disownPostmasterFile(folder.pgdata);
    const server = await spawnServer(folder.binaries.postgres, args, folder.account, serverLog);
    const onWait = (seconds: number) =>
      log(`The database is not ready yet (${seconds} s); it may be recovering`);
    if (await becameReady(server, folder.pgdata, onWait)) return { server, port, adopted: false };
    await endServer(server, STOP_PATIENCE);
    const output = await tailOf(serverLog);
    switch (obstacleIn(output, server.pid)) {
      case 'port-taken':
        if (portTries++ >= PORT_TRIES) throw startFailure(serverLog, output);
        preferred = null;
        break;
      case 'stragglers':
        if (performance.now() - begin > STRAGGLERS_GONE_WITHIN_MS) throw startFailure(serverLog, output);
        await sleep(STRAGGLERS_RETRY_MS);
        break;
      case 'other':
        throw startFailure(serverLog, output);
    }
  }
}

/**
 * Why the server did not start, if another try can help. The messages are those of locale C. Only messages of the
 * server itself count: children of an earlier server may still write into the same log.
 */
function obstacleIn(output: string, pid: number): 'port-taken' | 'stragglers' | 'other' {
  const fatal = output.split('\n').find((line) => line.includes(`[${pid}] FATAL:`)) ?? '';
  if (fatal.includes('could not create any TCP/IP sockets')) return 'port-taken';
  // Children of a killed server may finish their work before they notice that it is gone.
  if (fatal.includes('pre-existing shared memory block')) return 'stragglers';
  return 'other';
}

function startFailure(serverLog: ServerLog, output: string): Error {
  const full = /no space left on device/i.test(output);
  const advice = full ? 'The disk is full. Make room and start again.' : OWN_DATABASE;
  return embeddedFailure(
    `The embedded Postgres did not start. Its log (${serverLog.path}) says:\n${output || 'nothing'}\n${advice}`,
  );
}

function handle(
  folder: ServerFolder,
  { server, port, adopted }: Running,
  serverLog: ServerLog,
  onUnexpectedExit: (detail: string) => void,
): EmbeddedPostgres {
  let stopped: Promise<void> | null = null;
  const stopping = new AbortController();
  void keepSmall(serverLog, stopping.signal);
  server.hold(false);
  // A second Ctrl-C exits this program at once. After a kill the next start finds the server still running.
  const onExit = () => orderEnd(server);
  process.on('exit', onExit);
  const watch = async () => {
    await server.exited;
    process.off('exit', onExit);
    if (stopped !== null) return;
    const output = await tailOf(serverLog).catch(() => '');
    onUnexpectedExit(
      `The embedded Postgres (process ${server.pid}) ended. Its log ends with:\n${output || 'nothing'}`,
    );
  };
  void watch();
  const stop = async () => {
    process.off('exit', onExit);
    stopping.abort();
    await endServer(server, STOP_PATIENCE);
    await folder.release();
  };
  return {
    url: urlOf(NODE_ROLE, folder.state.nodePassword, port),
    administratorUrl: administratorUrlOf(folder, port),
    port,
    home: folder.home,
    adopted,
    stop: () => {
      stopped ??= stop();
      return stopped;
    },
  };
}

/** The addresses of the server of a data folder, whether it runs or not; null when the folder has none. */
export async function embeddedUrls(
  dataFolder: string,
): Promise<Pick<EmbeddedPostgres, 'url' | 'administratorUrl'> | null> {
  const state = await readState(dataFolder);
  if (state === null) return null;
  const { port, password, nodePassword } = state;
  return { url: urlOf(NODE_ROLE, nodePassword, port), administratorUrl: urlOf(ROLE, password, port) };
}

/**
 * Removes a data folder and the server's files, wherever they are. Ends a server that was left running; throws when
 * the folder is in use.
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
    for (const unlock of locks) unlockQuietly(unlock);
    throw error;
  }
}

/** Releases a lock whose file may have been removed with its folder. */
function unlockQuietly(unlock: () => void): void {
  try {
    unlock();
  } catch {
    // A removed folder needs no lock.
  }
}
