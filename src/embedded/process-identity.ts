import { execFile } from 'node:child_process';
import { readFile, readlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import { processMark } from '../host/processes.js';

const run = promisify(execFile);

/** Whether the process with this number is still the one that had the mark. */
export function isAlive(pid: number, mark: string): boolean {
  return processMark(pid) === mark;
}

/** Whether the process is the Postgres server of this folder, told by its working folder or its arguments. */
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
