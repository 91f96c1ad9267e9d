import { execFile } from 'node:child_process';
import { readFile, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { processMark } from '../host/processes.js';
import { readPostmasterFile } from './postmaster-file.js';
import { endServer, type Patience, type ServerProcess, watchServer } from './server-process.js';

/** A server that a killed program left running. */
interface LeftBehind {
  readonly server: ServerProcess;
  /** The port it listens on; null while it accepts no connections. */
  readonly port: number | null;
}

const PATIENCE: Patience = { fastMs: 15_000, immediateMs: 5_000 };
const LOGIN_WITHIN_MS = 5_000;

/**
 * Finds a server that still runs on a folder. The caller holds the folder's lock, so no other program starts one
 * meanwhile.
 */
export async function findLeftBehind(pgdata: string): Promise<LeftBehind | null> {
  const file = await readPostmasterFile(pgdata);
  if (file === null || file === 'damaged') return null;
  const mark = processMark(file.pid);
  if (mark === null || !(await isServerOf(file.pid, pgdata))) return null;
  return { server: watchServer(file.pid, mark), port: file.ready ? file.port : null };
}

/** Whether the server was started with these arguments and accepts the credentials, so that it can be taken over. */
export async function isUsable(pgdata: string, args: readonly string[], url: string): Promise<boolean> {
  const startedWith = await readFile(join(pgdata, 'postmaster.opts'), 'utf8').catch(() => '');
  if (!startedWith.trimEnd().endsWith(args.map((argument) => `"${argument}"`).join(' '))) return false;
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: LOGIN_WITHIN_MS });
  // A connection that breaks after the check does not matter.
  client.on('error', () => {});
  try {
    await client.connect();
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}

/** Ends a server that was left running and cannot be taken over. */
export async function endLeftBehind(leftBehind: LeftBehind): Promise<void> {
  await endServer(leftBehind.server, PATIENCE);
}

const run = promisify(execFile);

/** Whether the process is the Postgres server of this folder, according to its working folder or its arguments. */
export async function isServerOf(pid: number, pgdata: string): Promise<boolean> {
  if (processMark(pid) === null) return false;
  if (process.platform === 'linux') {
    const folder = await readlink(`/proc/${pid}/cwd`).catch(() => null);
    if (folder !== null) return folder === pgdata;
  }
  const command = await commandLine(pid);
  return command.includes('postgres') && command.includes(`-D ${pgdata} `);
}

async function commandLine(pid: number): Promise<string> {
  try {
    if (process.platform === 'linux') {
      return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ');
    }
    return (await run('ps', ['-ww', '-o', 'command=', '-p', String(pid)])).stdout;
  } catch {
    return '';
  }
}
