import { chownSync, mkdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { removeFolder } from './remove-folder.js';

/** The folder in which a program runs: a new one for each attempt, with what the program is given and what it leaves behind. */

export const PAYLOAD_FILE = 'payload.json';
export const TOKEN_FILE = 'token';
export const OUTPUT_FOLDER = 'output';

interface FolderParts {
  readonly path: string;
  /** The payload as JSON. */
  readonly payload: string;
  /** With which the program may report; undefined if it has none. */
  readonly token: string | undefined;
  /** The user of the attempt; null if it has none of its own. */
  readonly user: number | null;
}

/** The folder of one attempt. */
export class JobFolder {
  readonly path: string;

  private constructor(path: string) {
    this.path = path;
  }

  /**
   * Makes the folder. Without waiting: these are a few calls that never leave the machine, and each of them would take longer
   * by way of the pool of threads.
   */
  static make({ path, payload, token, user }: FolderParts): JobFolder {
    makeNew(path);
    try {
      mkdirSync(join(path, OUTPUT_FOLDER), { mode: 0o700 });
      writeFileSync(join(path, PAYLOAD_FILE), payload, { mode: 0o600 });
      if (token !== undefined) writeFileSync(join(path, TOKEN_FILE), token, { mode: 0o600 });
      if (user !== null) {
        // The folder comes last: what is inside cannot be replaced before it is the program's own.
        const inside = [OUTPUT_FOLDER, PAYLOAD_FILE, ...(token === undefined ? [] : [TOKEN_FILE])];
        for (const name of inside) chownSync(join(path, name), user, user);
        chownSync(path, user, user);
      }
    } catch (error) {
      // A full disk must not keep what fitted.
      rmSync(path, { recursive: true, force: true });
      throw error;
    }
    return new JobFolder(path);
  }

  get payload(): string {
    return join(this.path, PAYLOAD_FILE);
  }

  /** Where the program puts what is to be kept. */
  get output(): string {
    return join(this.path, OUTPUT_FOLDER);
  }

  /** Removes it with everything in it: mostly that is what it was made with, and that takes a few calls. */
  async remove(): Promise<void> {
    try {
      for (const name of [PAYLOAD_FILE, TOKEN_FILE]) rmSync(join(this.path, name), { force: true });
      rmdirSync(this.output);
      rmdirSync(this.path);
    } catch {
      // It has left something, or taken something away.
      await removeFolder(this.path).catch(() => undefined);
    }
  }
}

/** An attempt is started once, so nothing is there, unless a worker was killed and its folder could not be removed. */
function makeNew(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path, { recursive: true, mode: 0o700 });
  }
}
