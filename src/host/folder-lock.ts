import { randomUUID } from 'node:crypto';
import { linkSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { greatest } from '../core/long-lists.js';
import { processMark } from './processes.js';

/**
 * At most one process works on a folder, even if processes are killed and others start at the same moment.
 *
 * The lock is a file with a number in its name, and numbers only grow. A process that finds the highest number
 * released, or its holder dead, may create the next one. It does so with a hard link: exactly one process succeeds, and
 * the file is complete as soon as it is visible. The highest number is never removed. A slow process that has read an
 * older state therefore finds its number taken, or a higher one beside its own, and gives up its own.
 *
 * With one file of a fixed name, two processes could both find the holder dead; the second would remove the lock that
 * the first has just taken.
 */

/** The process that holds a lock. */
export interface FolderHolder {
  readonly pid: number;
  /** Since when, as an ISO 8601 date. */
  readonly since: string;
}

interface Holder extends FolderHolder {
  /** Distinguishes the process from a later one with the same id; see `processMark`. */
  readonly mark: string | null;
  readonly released: boolean;
}

/** Locks a folder for this process and answers with the function that releases it; throws `inUse` if it is locked. */
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

/** Null for a file that a power cut has truncated: its writer is dead. */
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
  // Readable for all users: one who is refused must be able to read who holds the lock.
  writeFileSync(draft, `${JSON.stringify(holder)}\n`, { mode: 0o644 });
  return draft;
}

function hasCode(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException).code === code;
}
