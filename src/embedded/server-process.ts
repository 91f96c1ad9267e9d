import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { processMark } from '../host/processes.js';
import { type Account, CLEAN_ENVIRONMENT, spawnIdentity } from './account.js';
import { codeOf, explain } from './embedded-failure.js';
import { readPostmasterFile } from './postmaster-file.js';
import type { ServerLog } from './server-log.js';

/** A server process that this program or an earlier one has started. */
export interface ServerProcess {
  readonly pid: number;
  /** Resolves when the process has ended. */
  readonly exited: Promise<void>;
  /** Sets whether the process keeps this program from exiting. */
  hold(held: boolean): void;
}

const POLL_MS = 20;
const WATCH_MS = 500;
const READY_WITHIN_MS = 10 * 60_000;

/**
 * Starts the server in a session of its own, so that Ctrl-C in a terminal reaches only this program, which ends the
 * server after everything else.
 */
export async function spawnServer(
  file: string,
  args: readonly string[],
  account: Account | null,
  log: ServerLog,
): Promise<ServerProcess> {
  const output = await open(log.path, 'a', 0o600);
  try {
    const child = spawn(file, args, {
      cwd: '/',
      env: CLEAN_ENVIRONMENT,
      detached: true,
      stdio: ['ignore', output.fd, output.fd],
      ...spawnIdentity(account),
    });
    const exited = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    await once(child, 'spawn');
    return {
      pid: child.pid!,
      exited,
      hold: (held) => (held ? child.ref() : child.unref()),
    };
  } catch (error) {
    throw explain(error, 'The embedded Postgres could not be started');
  } finally {
    await output.close();
  }
}

/** Whether the process with this id is still the one with the mark, and not a later one with the same id. */
export function isAlive(pid: number, mark: string): boolean {
  return processMark(pid) === mark;
}

/** A handle for a server that another program has started and left running. */
export function watchServer(pid: number, mark: string): ServerProcess {
  let held = false;
  const ended = async () => {
    while (isAlive(pid, mark)) await sleep(held ? POLL_MS : WATCH_MS, undefined, { ref: held });
  };
  return {
    pid,
    exited: ended(),
    hold: (value) => {
      held = value;
    },
  };
}

/** Waits until the server accepts connections; false when it ended or was not ready within ten minutes. */
export async function becameReady(
  server: ServerProcess,
  pgdata: string,
  onWait: (seconds: number) => void,
): Promise<boolean> {
  let running = true;
  void server.exited.then(() => {
    running = false;
  });
  const begin = performance.now();
  let told = 0;
  while (running && performance.now() - begin < READY_WITHIN_MS) {
    const file = await readPostmasterFile(pgdata);
    if (file !== null && file !== 'damaged' && file.pid === server.pid && file.ready) return true;
    const seconds = Math.floor((performance.now() - begin) / 5_000) * 5;
    if (seconds > told) onWait(seconds);
    told = seconds;
    await sleep(POLL_MS);
  }
  return false;
}

/** How long each kind of shutdown may take before the next, harder one. */
export interface Patience {
  readonly fastMs: number;
  readonly immediateMs: number;
}

/**
 * Ends the server: first by a fast shutdown, which ends sessions and writes a checkpoint; then by an immediate one,
 * which leaves recovery to the next start; then by a kill. Committed data survives all three.
 */
export async function endServer(server: ServerProcess, patience: Patience): Promise<void> {
  server.hold(true);
  if (await endsBy(server, 'SIGINT', patience.fastMs)) return;
  if (await endsBy(server, 'SIGQUIT', patience.immediateMs)) return;
  signal(server.pid, 'SIGKILL');
  await server.exited;
}

async function endsBy(server: ServerProcess, name: NodeJS.Signals, withinMs: number): Promise<boolean> {
  if (!signal(server.pid, name)) return true;
  const giveUp = new AbortController();
  const tooLong = sleep(withinMs, false, { signal: giveUp.signal }).catch(() => false);
  const ended = await Promise.race([server.exited.then(() => true), tooLong]);
  giveUp.abort();
  return ended;
}

/** Tells the server to shut down without waiting for it, for use when the process exits. */
export function orderEnd(server: ServerProcess): void {
  try {
    signal(server.pid, 'SIGINT');
  } catch {
    // The process is exiting, so nobody can be told.
  }
}

/** Sends a signal; false when the process is gone already. */
function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name);
    return true;
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false;
    throw explain(error, `The embedded Postgres (process ${pid}) could not be stopped`);
  }
}
