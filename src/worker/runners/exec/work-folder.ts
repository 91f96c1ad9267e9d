import { createHash, randomUUID } from 'node:crypto';
import { chmod, lstat, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { messageOf, PunctualError } from '../../../core/errors.js';
import { type FolderHolder, lockFolder } from '../../../host/folder-lock.js';
import { endLeftovers } from './leftovers.js';
import { failureOf, type UserRange } from './machine.js';
import { removeFolder } from './remove-folder.js';

/** Where a worker keeps the folders of its programs and the binaries that it has downloaded. One worker at a time holds it. */

/** How the paths of temporary ones begin. */
const TEMPORARY = join(tmpdir(), 'punctual-exec-');

/**
 * Folders are made and removed by several processes at once, and the kernel lets only one at a time change a folder: where a disk
 * has to be waited for, all others would wait, too.
 */
const PARTS = 16;

/** How often a program is tried that has just been written. */
const MOST_TRIES = 5;

class FolderInUse extends Error {
  constructor({ pid }: FolderHolder) {
    super(`in use by process ${pid}`);
  }
}

/** The folder of one worker for its programs. */
export class WorkFolder {
  readonly path: string;
  readonly #unlock: () => void;
  /** Whether nobody will look for it again. */
  readonly #isTemporary: boolean;
  #nextPart = 0;

  private constructor(path: string, unlock: () => void, isTemporary: boolean) {
    this.path = path;
    this.#unlock = unlock;
    this.#isTemporary = isTemporary;
  }

  /**
   * Opens the folder, and ends and removes what an earlier worker left in it. Without a path, and while another worker holds it,
   * as one does that finishes its jobs after its supervisor was killed, it is a temporary one.
   */
  static async open(given: string | null, users: UserRange | null): Promise<WorkFolder> {
    const path = given === null ? temporaryPath(randomUUID()) : await reachable(resolve(given), users);
    try {
      return await WorkFolder.#openAt(path, users, given === null);
    } catch (error) {
      if (!(error instanceof FolderInUse)) throw cannotUse(path, error);
    }
    const other = temporaryPath(randomUUID());
    return WorkFolder.#openAt(other, users, true).catch((error) => {
      throw cannotUse(other, error);
    });
  }

  static async #openAt(path: string, users: UserRange | null, isTemporary: boolean): Promise<WorkFolder> {
    // Programs with users of their own must be able to get to their folders, and not to see those of others.
    const mode = users === null ? 0o700 : 0o711;
    await mkdir(path, { recursive: true, mode });
    await mustBeOwn(path);
    const unlock = lockFolder(path, 'lock.', (holder) => new FolderInUse(holder));
    const folder = new WorkFolder(path, unlock, isTemporary);
    for (const each of [path, folder.jobs, folder.cache]) {
      await mkdir(each, { recursive: true, mode });
      await chmod(each, mode);
    }
    await endLeftovers(path, folder.jobs, users);
    for (const name of await readdir(folder.jobs)) {
      // What cannot be removed must not keep the worker from its work.
      await removeFolder(join(folder.jobs, name)).catch(() => undefined);
    }
    for (let part = 0; part < PARTS; part++) {
      const each = join(folder.jobs, String(part));
      await mkdir(each, { recursive: true, mode });
      await chmod(each, mode);
    }
    return folder;
  }

  /** Tells the workers of a machine apart, in few characters. */
  get name(): string {
    return nameOf(this.path);
  }

  /** The folders of programs, in several parts. */
  get jobs(): string {
    return join(this.path, 'jobs');
  }

  /** Where the folder of a program is to be made. */
  pathOfJob(name: string): string {
    this.#nextPart = (this.#nextPart + 1) % PARTS;
    return join(this.jobs, String(this.#nextPart), name);
  }

  /** Downloaded binaries. */
  get cache(): string {
    return join(this.path, 'cache');
  }

  /** Writes a file that programs need around them; answers with its path, or null if there is nothing to write. */
  async keep(name: string, bytes: Buffer | null): Promise<string | null> {
    if (bytes === null) return null;
    const path = join(this.path, name);
    await writeFile(path, bytes, { mode: 0o600 });
    return path;
  }

  /** Writes a program; answers with its path, or null if there is nothing to write or it cannot be run here. */
  async keepProgram(name: string, bytes: Buffer | null): Promise<string | null> {
    // What an earlier worker has left may still run, and then it cannot be written to.
    await rm(join(this.path, name), { force: true });
    const path = await this.keep(name, bytes);
    if (path === null) return null;
    await chmod(path, 0o700);
    for (let tries = 1; ; tries++) {
      const failure = await failureOf(path, [], null);
      if (failure === null) return path;
      // Another thread of this process starts something, which has the file open for writing until it is another program.
      if (!failure.includes('ETXTBSY') || tries === MOST_TRIES) return null;
    }
  }

  /** Releases it. */
  async close(): Promise<void> {
    // In a folder for temporary files, nothing stays that is of no use to the next worker.
    const isOfUse = !this.#isTemporary && (await readdir(this.cache).catch(() => [])).length > 0;
    if (isOfUse || !this.path.startsWith(TEMPORARY)) this.#unlock();
    else await rm(this.path, { recursive: true, force: true }).catch(() => undefined);
  }
}

/** A path that every user can get to, if programs have users of their own: a folder below a private home is none. */
async function reachable(path: string, users: UserRange | null): Promise<string> {
  if (users === null || (await isOpen(dirname(path)))) return path;
  return temporaryPath(nameOf(path));
}

async function isOpen(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => null);
  // What is made later is made so that it is open.
  if (found !== null && (found.mode & 0o001) === 0) return false;
  return dirname(path) === path || isOpen(dirname(path));
}

function temporaryPath(name: string): string {
  return `${TEMPORARY}${process.getuid?.() ?? 0}-${name}`;
}

function nameOf(path: string): string {
  return createHash('sha256').update(path).digest('hex').slice(0, 16);
}

/** In a folder for temporary files, somebody else may have made it before. */
async function mustBeOwn(path: string): Promise<void> {
  const { uid } = await lstat(path);
  if (process.getuid !== undefined && uid !== process.getuid())
    throw new Error('it belongs to somebody else');
}

function cannotUse(path: string, error: unknown): PunctualError {
  const detail = `The folder ${path} for programs cannot be used: ${messageOf(error)}.`;
  return new PunctualError('CONFIGURATION', detail, { cause: error });
}
