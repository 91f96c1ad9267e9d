import { chownSync, mkdirSync, rmdirSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The folder in which a program runs: a new one for each attempt, with what the program is given and what it leaves behind. */

export const PAYLOAD_FILE = 'payload.json';
export const TOKEN_FILE = 'token';
export const OUTPUT_FOLDER = 'output';

/** What a folder is made of. */
export interface FolderParts {
  readonly path: string;
  /** The payload as JSON. */
  readonly payload: string;
  /** With which the program may report; undefined if it has none. */
  readonly token?: string | undefined;
}

/** The files that are made in a folder, with what is in them. */
export function filesOf({ payload, token }: FolderParts): [name: string, text: string][] {
  return [[PAYLOAD_FILE, payload], ...(token === undefined ? [] : [[TOKEN_FILE, token] as [string, string]])];
}

/** Makes the folder, for a user if the attempt has one of its own. Without waiting: these are a few calls that never leave the machine. */
export function makeFolder(parts: FolderParts, user: number | null): void {
  const { path } = parts;
  mkdirSync(path, { mode: 0o700 });
  try {
    const output = join(path, OUTPUT_FOLDER);
    mkdirSync(output, { mode: 0o700 });
    if (user !== null) chownSync(output, user, user);
    for (const [name, text] of filesOf(parts)) {
      const file = join(path, name);
      writeFileSync(file, text, { mode: 0o600, flag: 'wx' });
      if (user !== null) chownSync(file, user, user);
    }
    // The folder comes last: what is inside cannot be replaced before it is the program's own.
    if (user !== null) chownSync(path, user, user);
  } catch (error) {
    // A full disk must not keep what fitted.
    rmSync(path, { recursive: true, force: true });
    throw error;
  }
}

/** Removes what a folder was made with, and the folder if nothing else is in it; answers whether it is gone. */
export function removeUnused(parts: FolderParts): boolean {
  const { path } = parts;
  try {
    for (const [name] of filesOf(parts)) unlinkSync(join(path, name));
    rmdirSync(join(path, OUTPUT_FOLDER));
    rmdirSync(path);
    return true;
  } catch {
    // It has left something, or taken something away.
    return false;
  }
}
