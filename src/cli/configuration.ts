import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ConfigInput,
  environmentName,
  type ResolvedConfig,
  resolveConfig,
  SETTINGS,
  type SettingName,
} from '../core/config.js';
import { formatDuration } from '../core/duration.js';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Cli } from './cli.js';
import type { Output } from './output.js';

/** Resolves all settings from flags, the environment of the program and the defaults. */
export function resolveSettings(cli: Cli, flags: ConfigInput): ResolvedConfig {
  return resolveConfig(flags, cli.environment, (path) => {
    try {
      return readFileSync(path, 'utf8');
    } catch (error) {
      throw new PunctualError('CONFIGURATION', `A file named by a _FILE variable: ${messageOf(error)}.`, {
        cause: error,
      });
    }
  });
}

/** The first database of a list; the catalog and the operator keys live there. */
export function firstDatabase(databaseUrl: string): string {
  const first = databaseUrl.split(',')[0]?.trim();
  if (first) return first;
  throw new PunctualError(
    'USAGE',
    'A database is needed: give --database-url URL or set PUNCTUAL_DATABASE_URL.',
  );
}

const NAMES = Object.keys(SETTINGS) as SettingName[];

/** A setting as it may be shown: secrets hidden, durations as people write them. */
function shown(name: SettingName, value: string | number | boolean): string | number | boolean {
  const { kind } = SETTINGS[name];
  if (kind === 'secret') return value === '' ? '' : '(hidden)';
  if (kind === 'duration') return formatDuration(value as number);
  return value;
}

/** Prints every setting and where it came from, which answers most questions about a surprising one. */
export function printConfig(output: Output, resolved: ResolvedConfig): void {
  const settings = NAMES.map((name) => ({
    name,
    value: shown(name, resolved.config[name]),
    source: resolved.sources[name],
    environment: environmentName(name),
  }));
  output.document({ data: settings }, () =>
    output.table(
      [
        { header: 'SETTING' },
        { header: 'VALUE', shrink: true },
        { header: 'FROM' },
        { header: 'ENVIRONMENT' },
      ],
      settings.map(({ name, value, source, environment }) => [name, String(value), source, environment]),
    ),
  );
}

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
