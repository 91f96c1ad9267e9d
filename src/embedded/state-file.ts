import { randomBytes } from 'node:crypto';
import { open, readFile, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { codeOf } from './embedded-failure.js';
import { giveToOwnerOf } from './server-home.js';

/** What the data folder remembers about its server from one start to the next. */
export interface ServerState {
  /** Where the server's files are: the data folder itself (`.`), or a place that another account can reach. */
  readonly home: string;
  readonly port: number;
  /** Of the role that owns the server. */
  readonly password: string;
  /** Of the role that nodes use. */
  readonly nodePassword: string;
}

/** The file is readable by its owner alone, because it holds the passwords. */
const STATE_FILE = 'postgres.json';

/** The remembered state; null on first use, or when the file was lost or damaged. */
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

/** Writes the state so that a power cut leaves either the old one or the new one. */
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

/** Makes renames in a folder survive a power cut. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A password nobody guesses, of letters and digits so that it needs no escaping anywhere. */
export function randomPassword(): string {
  return randomBytes(24).toString('hex');
}
