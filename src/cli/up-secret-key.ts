import { randomBytes } from 'node:crypto';
import { link, open, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf, PunctualError } from '../core/errors.js';
import { MASTER_KEY_FORM, makeMasterKey, readMasterKeys } from '../core/secret-box.js';

/** The path of the file with the master key of a data folder. */
export function secretKeyPath(dataFolder: string): string {
  return join(dataFolder, 'secret-key');
}

/**
 * The master key of a data folder, made at the first start. A key that cannot be read is never replaced: what was encrypted with it
 * would be lost.
 */
export async function findOrMakeSecretKey(dataFolder: string): Promise<string> {
  const path = secretKeyPath(dataFolder);
  const kept = await readKey(path);
  if (kept !== null) return kept;
  const temporary = `${path}.${randomBytes(6).toString('hex')}`;
  try {
    const file = await open(temporary, 'wx', 0o600);
    try {
      await file.writeFile(`${makeMasterKey()}\n`);
      await file.sync();
    } finally {
      await file.close();
    }
    // Unlike a rename it never takes the place of a key that somebody else has just made.
    await link(temporary, path).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    });
  } finally {
    await rm(temporary, { force: true });
  }
  return (await readKey(path))!;
}

async function readKey(path: string): Promise<string | null> {
  let text: string;
  try {
    text = (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw new PunctualError('CONFIGURATION', `The master key cannot be read: ${messageOf(error)}.`, {
      cause: error,
    });
  }
  if (readMasterKeys(text)) return text;
  const detail = `${path}: expected ${MASTER_KEY_FORM}.`;
  const hint =
    'Restore the file: what was encrypted with the key cannot be read without it. If there are no secrets, delete it.';
  throw new PunctualError('CONFIGURATION', detail, { hint });
}
