import { closeSync, constants, type Dirent, opendirSync, openSync } from 'node:fs';
import { type FileHandle, open, opendir } from 'node:fs/promises';
import { join } from 'node:path';
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
/** A link in the place of a folder would lead to files of the worker. */
const FOLDER_ONLY = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

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
  for await (const { path, name } of filesBelow(folder, '', MOST_LEVELS, budget)) {
    if (sent === MOST_FILES) {
      log.warn(`More than ${MOST_FILES} files are in output; the others are not kept.`);
      return;
    }
    sent += 1;
    await sendOutput(parts, path, name).catch((error) => {
      log.warn(`output/${name} is not kept: ${messageOf(error)}`);
    });
    if (parts.signal.aborted) return;
  }
  if (budget.entries <= 0)
    log.warn(`More than ${MOST_ENTRIES} entries are in output; not all were looked at.`);
}

/** Also if it is gone, or no folder any more. */
function isEmpty(path: string): boolean {
  const opened = openFolder(path);
  if (opened === null) return true;
  try {
    const folder = opendirSync(opened.path);
    try {
      return folder.readSync() === null;
    } finally {
      folder.closeSync();
    }
  } catch {
    return true;
  } finally {
    closeSync(opened.descriptor);
  }
}

/**
 * A folder, with a path that leads to this one also if something else is put in its place; null if it is gone, closed, or no folder.
 * Systems without `/proc` have no such path.
 */
function openFolder(path: string): { readonly descriptor: number; readonly path: string } | null {
  try {
    const descriptor = openSync(path, FOLDER_ONLY);
    return { descriptor, path: process.platform === 'linux' ? `/proc/self/fd/${descriptor}` : path };
  } catch {
    return null;
  }
}

/** How many entries may still be looked at. */
interface EntryBudget {
  entries: number;
}

/** A file that was found; its path is good until the next one is asked for. */
interface FoundFile {
  readonly path: string;
  /** Its path below the folder of all. */
  readonly name: string;
}

async function* filesBelow(
  folder: string,
  name: string,
  levels: number,
  budget: EntryBudget,
): AsyncGenerator<FoundFile> {
  const opened = openFolder(folder);
  if (opened === null) return;
  try {
    for (const entry of await entriesOf(opened.path, budget)) {
      const found = { path: join(opened.path, entry.name), name: join(name, entry.name) };
      if (entry.isDirectory() && levels > 1) yield* filesBelow(found.path, found.name, levels - 1, budget);
      else if (entry.isFile()) yield found;
    }
  } finally {
    closeSync(opened.descriptor);
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
    // It cannot be read.
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
