import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/**
 * Which process a number stands for. Numbers are given out again, above all after a reboot, so a process is named by
 * its number together with the moment it started.
 */

/** A mark of this very start of a process, or null when there is no such process (a zombie counts as none). */
export function processMark(pid: number): string | null {
  try {
    return process.platform === 'linux' ? markFromProc(pid) : markFromPs(pid);
  } catch {
    return null;
  }
}

function markFromProc(pid: number): string | null {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return markFromStat(stat, readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
}

/** Reads the start time out of a line of `/proc/PID/stat`; the name in brackets may itself hold brackets. */
export function markFromStat(stat: string, bootId: string): string | null {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state] = fields;
  const startTicks = fields[19];
  if (startTicks === undefined || state === 'Z' || state === 'X') return null;
  return `${bootId}/${startTicks}`;
}

function markFromPs(pid: number): string | null {
  const args = ['-o', 'stat=,lstart=', '-p', String(pid)];
  const line = execFileSync('ps', args, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } }).trim();
  return line === '' || line.startsWith('Z') ? null : line.replace(/^\S+\s+/, '');
}
