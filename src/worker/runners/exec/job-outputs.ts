import { constants, type Dirent, opendirSync } from 'node:fs';
import { type FileHandle, open, opendir } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { asPunctualError, messageOf } from '../../../core/errors.js';
import type { WorkerGateway } from '../../../core/gateway.js';
import type { JobLog } from '../../../core/task.js';
import type { Assignment } from '../../../core/wire.js';
import { GrowingPause, pause } from '../../../transport/pause.js';

/** The most files of one job; nodes have bounds of their own. */
const MOST_FILES = 100;
/** The deepest folder that is looked into. */
const MOST_LEVELS = 8;
/** The most entries of all folders that are looked at: a program may leave more than there is memory for their names. */
const MOST_ENTRIES = 10_000;
/** How often a file is sent again while no node can take it. */
const MOST_TRIES = 20;

interface OutputParts {
  readonly gateway: Pick<WorkerGateway, 'output' | 'triesAtOnce'>;
  readonly assignment: Assignment;
  /** The folder in which the program has left files. */
  readonly folder: string;
  /** The user of the attempt; null if it has none of its own. */
  readonly user: number | null;
  readonly log: JobLog;
  readonly signal: AbortSignal;
}

/** Sends what a program has left in its folder `output`. What cannot be sent is told in the log of the job, and fails nothing. */
export async function sendOutputs(parts: OutputParts): Promise<void> {
  const { folder, log } = parts;
  // Most programs leave nothing, and this call never leaves the machine.
  if (isEmpty(folder)) return;
  let sent = 0;
  const budget = { entries: MOST_ENTRIES + 1 };
  for await (const path of filesBelow(folder, MOST_LEVELS, budget)) {
    if (sent === MOST_FILES) {
      log.warn(`More than ${MOST_FILES} files are in output; the others are not kept.`);
      return;
    }
    sent += 1;
    const name = relative(folder, path);
    await sendOutput(parts, path, name).catch((error) => {
      log.warn(`output/${name} is not kept: ${messageOf(error)}`);
    });
    if (parts.signal.aborted) return;
  }
  if (budget.entries <= 0)
    log.warn(`More than ${MOST_ENTRIES} entries are in output; not all were looked at.`);
}

/** Also if it is gone. */
function isEmpty(path: string): boolean {
  try {
    const folder = opendirSync(path);
    try {
      return folder.readSync() === null;
    } finally {
      folder.closeSync();
    }
  } catch {
    return true;
  }
}

/** How many entries may still be looked at. */
interface EntryBudget {
  entries: number;
}

async function* filesBelow(folder: string, levels: number, budget: EntryBudget): AsyncGenerator<string> {
  for (const entry of await entriesOf(folder, budget)) {
    const path = join(folder, entry.name);
    if (entry.isDirectory() && levels > 1) yield* filesBelow(path, levels - 1, budget);
    else if (entry.isFile()) yield path;
  }
}

/** The entries of a folder by their names, as many as may be looked at. */
async function entriesOf(path: string, budget: EntryBudget): Promise<Dirent[]> {
  const entries: Dirent[] = [];
  try {
    for await (const entry of await opendir(path)) {
      if (budget.entries <= 0) break;
      budget.entries -= 1;
      entries.push(entry);
    }
  } catch {
    // It is gone, or closed.
  }
  return entries.sort((a, b) => (a.name < b.name ? -1 : 1));
}

async function sendOutput(parts: OutputParts, path: string, name: string): Promise<void> {
  const { gateway, assignment, user, signal } = parts;
  const { jobId, fence, token } = assignment;
  const growing = new GrowingPause(100, 2_000, gateway.triesAtOnce);
  for (let tries = 1; ; tries++) {
    const { file, size } = await openOwn(path, user);
    // Closes the file when it ends or is destroyed.
    const bytes = file.createReadStream({ start: 0, end: Math.max(size - 1, 0) });
    try {
      return await gateway.output(jobId, token, { fence, name, bytes, size, signal });
    } catch (thrown) {
      const error = asPunctualError(thrown);
      if (error.status !== 503 || tries === MOST_TRIES || signal.aborted) throw error;
      await pause(growing.nextMs(error), signal);
    } finally {
      bytes.destroy();
    }
  }
}

/**
 * Opens a file that is the program's own. The worker may read what the program may not: a link in its folder, symbolic or hard,
 * would have it send a file of somebody else.
 */
async function openOwn(path: string, user: number | null): Promise<{ file: FileHandle; size: number }> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  const found = await file.stat();
  const isOwn = found.isFile() && found.nlink === 1 && (user === null || found.uid === user);
  if (isOwn) return { file, size: found.size };
  await file.close();
  throw new Error('it is no file of its own');
}
