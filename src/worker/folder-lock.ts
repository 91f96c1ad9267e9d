import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PunctualError } from '../core/errors.js';

/**
 * At most one worker keeps its results in a folder, also when workers are killed and start at the same moment.
 *
 * A lock is a file with a number that only grows. Whoever finds the process behind the highest one dead makes
 * the next one by a hard link, which one process alone can win and which shows a complete file at once. The
 * highest is never removed: a slow process that judged by an older state finds its number taken, or a higher
 * one beside its own, and looks again.
 */

const PREFIX = 'lock.';

interface Holder {
  readonly pid: number;
  /** When the process started: process ids are given out again. */
  readonly mark: string;
}

/** Written in the holder's place when it lets go: no process has this number. */
const NOBODY: Holder = { pid: 0, mark: '' };

/** The locks of this very process, which the system cannot tell from its other workers. */
const held = new Set<string>();

/** Another worker has the folder; it may let go of it soon. */
export class FolderInUseError extends PunctualError {
  constructor(folder: string, { pid }: Holder) {
    const who = pid === process.pid ? 'another worker of this process' : `the worker in process ${pid}`;
    super(
      'CONFIGURATION',
      `The folder ${folder} is in use by ${who}; results wait in memory until it is free. Each worker needs a folder of its own.`,
    );
    this.name = 'FolderInUseError';
  }
}

/** Locks a folder for this process and gives the way to let go of it; throws when another one holds it. */
export function lockFolder(folder: string): () => void {
  const mine: Holder = { pid: process.pid, mark: markOf(process.pid) ?? '' };
  for (;;) {
    const highest = highestNumber(folder);
    const holder = highest === 0 ? null : readHolder(folder, highest);
    if (holder && isHeldBy(folder, holder)) throw new FolderInUseError(folder, holder);
    if (!take(folder, highest + 1, mine)) continue;
    if (highestNumber(folder) > highest + 1) continue;
    held.add(folder);
    for (const lower of numbers(folder)) {
      if (lower <= highest) rmSync(join(folder, `${PREFIX}${lower}`), { force: true });
    }
    return () => {
      held.delete(folder);
      renameSync(writeDraft(folder, NOBODY), join(folder, `${PREFIX}${highest + 1}`));
    };
  }
}

function isHeldBy(folder: string, holder: Holder): boolean {
  if (markOf(holder.pid) !== holder.mark) return false;
  return holder.pid !== process.pid || held.has(folder);
}

function numbers(folder: string): number[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => Number(name.slice(PREFIX.length)))
    .filter((number) => Number.isSafeInteger(number) && number > 0);
}

function highestNumber(folder: string): number {
  return Math.max(0, ...numbers(folder));
}

/** Null for a file that is gone or was cut short by a power cut: its writer is dead in either case. */
function readHolder(folder: string, number: number): Holder | null {
  try {
    return JSON.parse(readFileSync(join(folder, `${PREFIX}${number}`), 'utf8')) as Holder;
  } catch {
    return null;
  }
}

function take(folder: string, number: number, holder: Holder): boolean {
  const draft = writeDraft(folder, holder);
  try {
    linkSync(draft, join(folder, `${PREFIX}${number}`));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function writeDraft(folder: string, holder: Holder): string {
  const draft = join(folder, `draft.${randomUUID()}`);
  writeFileSync(draft, JSON.stringify(holder));
  return draft;
}

/** A mark of this very start of a process; null when there is no such process (a zombie counts as none). */
function markOf(pid: number): string | null {
  try {
    if (process.platform !== 'linux') {
      const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], {
        encoding: 'utf8',
      }).trim();
      return line.startsWith('Z') ? null : line.replace(/^\S+\s+/, '');
    }
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program stands in brackets and may hold anything, brackets and blanks included.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return fields[0] === 'Z' || fields[0] === 'X' ? null : `${boot}/${fields[19]}`;
  } catch {
    return null;
  }
}
