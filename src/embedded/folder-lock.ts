import { randomBytes } from 'node:crypto';
import { link, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { codeOf, embeddedFailure } from './failure.js';
import { processMark } from './process-identity.js';

/**
 * At most one program works on a folder, also when programs are killed and start at the same moment.
 *
 * The lock is a file with a number that only grows. Whoever finds the highest one released, or its holder
 * dead, may make the next one; making it is a hard link, which exactly one process can win and which shows
 * a complete file at once. The highest number is never removed: a slow process that read an older state
 * finds its number taken, or a higher one beside its own, and withdraws. Removing and making anew one file
 * of a fixed name would let two processes both remove "the dead one's", the second time a living one's.
 */

const PREFIX = 'postgres.lock.';

interface Holder {
  readonly pid: number;
  readonly mark: string | null;
  readonly since: string;
  readonly released: boolean;
}

export interface FolderLock {
  release(): Promise<void>;
}

/** Locks a folder for this process, or fails with an error that names the process that holds it. */
export async function lockFolder(folder: string): Promise<FolderLock> {
  const mine: Holder = {
    pid: process.pid,
    mark: await processMark(process.pid),
    since: new Date().toISOString(),
    released: false,
  };
  for (;;) {
    const highest = await highestNumber(folder);
    const holder = highest === 0 ? null : await readHolder(folder, highest);
    if (holder === 'gone') continue;
    if (holder !== null && (await isHeld(holder))) throw heldError(folder, holder);
    const number = highest + 1;
    if (!(await take(folder, number, mine))) continue;
    if ((await highestNumber(folder)) > number) {
      await rm(join(folder, `${PREFIX}${number}`), { force: true });
      continue;
    }
    await removeBelow(folder, number);
    return { release: () => replace(folder, number, { ...mine, released: true }) };
  }
}

async function isHeld(holder: Holder): Promise<boolean> {
  if (holder.released) return false;
  const mark = await processMark(holder.pid);
  return mark !== null && mark === holder.mark;
}

function heldError(folder: string, holder: Holder): Error {
  const who = holder.pid === process.pid ? 'this process itself' : `process ${holder.pid}`;
  return embeddedFailure(
    `The folder ${folder} is in use by ${who} since ${holder.since}. ` +
      'Stop that one first, or choose another folder with --data.',
  );
}

async function numbers(folder: string): Promise<number[]> {
  const names = await readdir(folder);
  return names
    .filter((name) => name.startsWith(PREFIX))
    .map((name) => Number(name.slice(PREFIX.length)))
    .filter((number) => Number.isSafeInteger(number) && number > 0);
}

async function highestNumber(folder: string): Promise<number> {
  return Math.max(0, ...(await numbers(folder)));
}

/** A file that cannot be understood was cut short by a power cut, so its writer is dead; `null` says so. */
async function readHolder(folder: string, number: number): Promise<Holder | null | 'gone'> {
  try {
    return JSON.parse(await readFile(join(folder, `${PREFIX}${number}`), 'utf8')) as Holder | null;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return 'gone';
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

async function take(folder: string, number: number, holder: Holder): Promise<boolean> {
  const draft = await writeDraft(folder, holder);
  try {
    await link(draft, join(folder, `${PREFIX}${number}`));
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

async function replace(folder: string, number: number, holder: Holder): Promise<void> {
  const draft = await writeDraft(folder, holder);
  await rename(draft, join(folder, `${PREFIX}${number}`));
}

async function writeDraft(folder: string, holder: Holder): Promise<string> {
  const draft = join(folder, `${PREFIX}draft-${randomBytes(8).toString('hex')}`);
  // Readable for all: whoever finds the folder in use may be another user than the holder.
  await writeFile(draft, `${JSON.stringify(holder)}\n`, { mode: 0o644 });
  return draft;
}

async function removeBelow(folder: string, number: number): Promise<void> {
  for (const lower of await numbers(folder)) {
    if (lower < number) await rm(join(folder, `${PREFIX}${lower}`), { force: true });
  }
}
