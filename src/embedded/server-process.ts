import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { processMark } from '../core/process-mark.js';
import { type Account, CLEAN_ENVIRONMENT, spawnIdentity } from './account.js';
import { codeOf, explain } from './embedded-failure.js';
import { readPostmasterFile } from './postmaster-file.js';
import type { ServerLog } from './server-log.js';

/** A server process, started by this program or by one before it. */
export interface ServerProcess {
  readonly pid: number;
  /** Settles when the process has ended, however it came to that. */
  readonly exited: Promise<void>;
  /** Whether waiting for the process keeps this program running. */
  hold(held: boolean): void;
}

const POLL_MS = 20;
const WATCH_MS = 500;
const READY_WITHIN_MS = 10 * 60_000;

/**
 * Starts the server in a session of its own: Ctrl-C in a terminal reaches the program, which first ends its
 * work and then the server, and does not reach the server before that.
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

/** Whether the process with this number is still the one that had the mark. */
export function isAlive(pid: number, mark: string): boolean {
  return processMark(pid) === mark;
}

/** A handle on a server that another program has started and left behind. */
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

/** Waits until the server takes connections: true; false when it ended, or was not ready in ten minutes. */
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

/** How long each way of ending a server may take before the next, harder one. */
export interface Patience {
  readonly fastMs: number;
  readonly immediateMs: number;
}

/**
 * Ends the server: first the fast shutdown, which ends sessions and writes everything out; then the
 * immediate one, which leaves recovery to the next start; then the hard way. Nothing committed is lost in any.
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

/** Has the server end by itself, for the last moment of a process that cannot wait for it. */
export function orderEnd(server: ServerProcess): void {
  try {
    signal(server.pid, 'SIGINT');
  } catch {
    // Nobody is left to be told.
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
