import { readFileSync } from 'node:fs';
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
