import { randomBytes } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** What `punctual up` leaves for the CLI and the SDK. */
export interface Credentials {
  readonly url: string;
  /** All nodes, so that one that is gone can be done without. */
  readonly urls: readonly string[];
  readonly apiKey: string;
}

/** Where the credentials of a data folder are. */
export function credentialsPath(dataFolder: string): string {
  return join(dataFolder, 'credentials.json');
}

/** The key of an earlier start; null when there is none that can be read. */
export async function readApiKey(dataFolder: string): Promise<string | null> {
  try {
    const { apiKey } = JSON.parse(await readFile(credentialsPath(dataFolder), 'utf8'));
    return typeof apiKey === 'string' ? apiKey : null;
  } catch {
    return null;
  }
}

/** Replaces the credentials in one step, so that no reader sees half of them; only the owner may read them. */
export async function writeCredentials(dataFolder: string, credentials: Credentials): Promise<void> {
  await mkdir(dataFolder, { recursive: true, mode: 0o700 });
  const temporary = `${credentialsPath(dataFolder)}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(temporary, `${JSON.stringify(credentials)}\n`, { mode: 0o600, flag: 'wx' });
    await rename(temporary, credentialsPath(dataFolder));
  } finally {
    await rm(temporary, { force: true });
  }
}
