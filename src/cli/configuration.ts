import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type ConfigInput,
  environmentName,
  type ResolvedConfig,
  resolveConfig,
  SETTINGS,
  type SettingName,
  unknownVariables,
} from '../core/config.js';
import { formatDuration } from '../core/duration.js';
import { messageOf, PunctualError } from '../core/errors.js';
import { makeDataFolder } from '../host/data-folder.js';
import { flagOf } from './call.js';
import type { Cli } from './cli.js';
import type { Output } from './output.js';

/** Resolves all settings from flags, the environment of the program and the defaults. */
export function resolveSettings(cli: Cli, flags: ConfigInput): ResolvedConfig {
  try {
    return resolveConfig(flags, cli.environment, readSetting);
  } catch (error) {
    throw nameFlag(error, flags);
  }
}

/** Warns of variables in the environment that are probably misspelt; once, and not by each process of `punctual up`. */
export function warnOfVariables(cli: Cli, warn: (text: string) => void): void {
  const unknown = cli.supervisor ? null : unknownVariables(cli.environment);
  if (unknown !== null) warn(unknown);
}

function readSetting(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new PunctualError('CONFIGURATION', `A file named by a _FILE variable: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

/** The error about a setting that was given by a flag, with the name of the flag. */
function nameFlag(thrown: unknown, flags: ConfigInput): unknown {
  if (!(thrown instanceof PunctualError)) return thrown;
  const { code, message } = thrown;
  const name = Object.keys(flags).find((each) => message.startsWith(`${each}: `));
  if (name === undefined) return thrown;
  return new PunctualError(code, flagOf(name) + message.slice(name.length), { cause: thrown });
}

/** The first database of the list, which holds the catalog and the operator keys. */
export function firstDatabase(databaseUrl: string): string {
  const first = databaseUrl.split(',')[0]?.trim();
  if (first) return first;
  throw new PunctualError(
    'USAGE',
    'A database is needed: give --database-url URL or set PUNCTUAL_DATABASE_URL.',
  );
}

const NAMES = Object.keys(SETTINGS) as SettingName[];

/** A setting as it is printed: secrets hidden, durations as people write them. */
function shown(name: SettingName, value: string | number | boolean): string | number | boolean {
  const { kind } = SETTINGS[name];
  if (kind === 'secret') return value === '' ? '' : '(hidden)';
  if (kind === 'duration') return formatDuration(value as number);
  return value;
}

/** Prints every setting and its source. */
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
        { header: 'ENVIRONMENT', drop: 1 },
      ],
      settings.map(({ name, value, source, environment }) => [name, String(value), source, environment]),
    ),
  );
}

/** The content of the file from which the CLI and the SDK read address and key. */
interface StoredCredentials {
  readonly url: string;
  /** All nodes, so that a client can switch to another. */
  readonly urls: readonly string[];
  readonly apiKey: string;
}

/** The path of the credentials file of a data folder. */
export function credentialsPath(dataFolder: string): string {
  return join(dataFolder, 'credentials.json');
}

/** The key of an earlier start; null when it cannot be read. */
export async function readApiKey(dataFolder: string): Promise<string | null> {
  try {
    const { apiKey } = JSON.parse(await readFile(credentialsPath(dataFolder), 'utf8'));
    return typeof apiKey === 'string' ? apiKey : null;
  } catch {
    return null;
  }
}

/** Replaces the credentials file atomically; only its owner may read it. */
export async function writeCredentials(dataFolder: string, credentials: StoredCredentials): Promise<void> {
  await makeDataFolder(dataFolder);
  const temporary = `${credentialsPath(dataFolder)}.${randomBytes(6).toString('hex')}`;
  try {
    await writeFile(temporary, `${JSON.stringify(credentials)}\n`, { mode: 0o600, flag: 'wx' });
    await rename(temporary, credentialsPath(dataFolder));
  } finally {
    await rm(temporary, { force: true });
  }
}
