import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf } from './embedded-failure.js';
import { giveToOwnerOf } from './server-home.js';

/** What is stored about the server from one start to the next. */
export interface ServerState {
  /** The home of the server's files: `.` for the data folder itself, else an absolute path. */
  readonly home: string;
  readonly port: number;
  /** The password of the superuser. */
  readonly password: string;
  /** The password of the role that nodes use. */
  readonly nodePassword: string;
}

/** Only its owner can read the file, because it holds passwords. */
const STATE_FILE = 'postgres.json';

/** The stored state; null on first use, or when the file is missing or damaged. */
export async function readState(dataFolder: string): Promise<ServerState | null> {
  try {
    const state = JSON.parse(await readFile(join(dataFolder, STATE_FILE), 'utf8')) as Partial<ServerState>;
    const { home, port, password } = state;
    if (typeof home !== 'string' || typeof port !== 'number' || typeof password !== 'string') return null;
    // An older version had one role for everything.
    const nodePassword = typeof state.nodePassword === 'string' ? state.nodePassword : '';
    return { home, port, password, nodePassword };
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || error instanceof SyntaxError) return null;
    throw error;
  }
}

/** Writes the state; after a power cut the file holds either the old or the new state. */
export async function writeState(dataFolder: string, state: ServerState): Promise<void> {
  const path = join(dataFolder, STATE_FILE);
  const draft = `${path}.draft-${randomBytes(4).toString('hex')}`;
  try {
    const file = await open(draft, 'wx', 0o600);
    try {
      await file.writeFile(`${JSON.stringify(state, null, 2)}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    await giveToOwnerOf(dataFolder, draft);
    await rename(draft, path);
    await syncFolder(dirname(path));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

/** Syncs a folder, so that renames in it survive a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A random password of letters and digits, which needs no escaping in SQL or URLs. */
export function randomPassword(): string {
  return randomBytes(24).toString('hex');
}
