import { randomUUID } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { greatest } from '../core/long-lists.js';
import { processMark } from './processes.js';

/**
 * At most one program works on a folder, also when programs are killed and start at the same moment.
 *
 * The lock is a file with a number that only grows. Whoever finds the highest one released, or its holder dead, may
 * make the next one; making it is a hard link, which exactly one process can win and which shows a complete file at
 * once. The highest number is never removed: a slow process that read an older state finds its number taken, or a
 * higher one beside its own, and withdraws. Removing and making anew one file of a fixed name would let two processes
 * both remove "the dead one's", the second time a living one's.
 */

/** Who has a lock. */
export interface FolderHolder {
  readonly pid: number;
  /** Since when, as people read it. */
  readonly since: string;
}

interface Holder extends FolderHolder {
  /** Tells the process from a later one under its number. */
  readonly mark: string | null;
  readonly released: boolean;
}

/** Locks a folder for this process and gives the way to let go of it; throws what `inUse` makes of its holder. */
export function lockFolder(
  folder: string,
  prefix: string,
  inUse: (holder: FolderHolder) => Error,
): () => void {
  const { pid } = process;
  const mine: Holder = { pid, mark: processMark(pid), since: new Date().toISOString(), released: false };
  for (;;) {
    const highest = highestNumber(folder, prefix);
    const holder = highest === 0 ? null : readHolder(join(folder, `${prefix}${highest}`));
    if (holder === 'gone') continue;
    if (holder !== null && isHeld(holder)) throw inUse(holder);
    const number = highest + 1;
    const path = join(folder, `${prefix}${number}`);
    if (!take(path, writeDraft(folder, prefix, mine))) continue;
    if (highestNumber(folder, prefix) > number) {
      rmSync(path, { force: true });
      continue;
    }
    for (const lower of numbers(folder, prefix)) {
      if (lower < number) rmSync(join(folder, `${prefix}${lower}`), { force: true });
    }
    return () => renameSync(writeDraft(folder, prefix, { ...mine, released: true }), path);
  }
}

function isHeld({ pid, mark, released }: Holder): boolean {
  return !released && mark !== null && processMark(pid) === mark;
}

function numbers(folder: string, prefix: string): number[] {
  return readdirSync(folder)
    .filter((name) => name.startsWith(prefix))
    .map((name) => Number(name.slice(prefix.length)))
    .filter((number) => Number.isSafeInteger(number) && number > 0);
}

function highestNumber(folder: string, prefix: string): number {
  return greatest(numbers(folder, prefix), 0);
}

/** A file that cannot be understood was cut short by a power cut, so its writer is dead; `null` says so. */
function readHolder(path: string): Holder | null | 'gone' {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder | null;
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return 'gone';
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function take(path: string, draft: string): boolean {
  try {
    linkSync(draft, path);
    return true;
  } catch (error) {
    if (hasCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

function writeDraft(folder: string, prefix: string, holder: Holder): string {
  const draft = join(folder, `${prefix}draft-${randomUUID()}`);
  // Readable for all: whoever finds the folder in use may be another user than the holder.
  writeFileSync(draft, `${JSON.stringify(holder)}\n`, { mode: 0o644 });
  return draft;
}

function hasCode(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException).code === code;
}
