import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Signals that arrive this close together are one order: some supervisors signal a process and then its group. */
export const ONE_ORDER_MS = 200;

/**
 * A mark of the process that has this id now, or null when there is none (a zombie counts as none). Ids are reused,
 * above all after a reboot, so the mark holds the boot and the moment the process started.
 */
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

/** The mark from a line of `/proc/PID/stat`; the name in brackets may itself contain brackets. */
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
