import { execFile } from 'node:child_process';
import { readFile, readlink } from 'node:fs/promises';
import { promisify } from 'node:util';

/**
 * Which process a number stands for. Numbers are given out again, above all after a reboot, so a process is
 * named by its number together with the moment it started.
 */

const run = promisify(execFile);

/** A mark of this very process start, or null when there is no such process (a zombie counts as none). */
export async function processMark(pid: number): Promise<string | null> {
  return process.platform === 'linux' ? await markFromProc(pid) : await markFromPs(pid);
}

async function markFromProc(pid: number): Promise<string | null> {
  try {
    const [stat, bootId] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    ]);
    return markFromStat(stat, bootId.trim());
  } catch {
    return null;
  }
}

/** Reads the start time out of a line of `/proc/PID/stat`; the name in brackets may itself hold brackets. */
export function markFromStat(stat: string, bootId: string): string | null {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const startTicks = fields[19];
  if (startTicks === undefined || state === 'Z' || state === 'X') return null;
  return `${bootId}/${startTicks}`;
}

async function markFromPs(pid: number): Promise<string | null> {
  try {
    const { stdout } = await run('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { env: { LC_ALL: 'C' } });
    const line = stdout.trim();
    return line === '' || line.startsWith('Z') ? null : line.replace(/^\S+\s+/, '');
  } catch {
    return null;
  }
}

/** Whether the process with this number is still the one that had the mark. */
export async function isAlive(pid: number, mark: string): Promise<boolean> {
  return (await processMark(pid)) === mark;
}

/** Whether the process is the Postgres server of this folder, told by its working folder or its arguments. */
export async function isServerOf(pid: number, pgdata: string): Promise<boolean> {
  if ((await processMark(pid)) === null) return false;
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
