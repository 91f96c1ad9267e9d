import type { Command } from 'commander';
import { PunctualError } from '../core/errors.js';
import { migrate } from '../store/migrate.js';
import { createOperatorKey } from '../store/operator-key.js';
import { runsLocally } from './call.js';
import type { Cli } from './cli.js';
import { firstDatabase, resolveSettings } from './configuration.js';

interface CreateOptions {
  readonly operator?: boolean;
  readonly databaseUrl?: string;
  readonly name: string;
}

/** `punctual key …`: access to the database is enough to create an operator key. */
export function addKeyCommands(program: Command, cli: Cli): void {
  const key = program.command('key').description('create keys for the API');
  const create = key
    .command('create')
    .description('create an operator key in a database; it is shown only once')
    .option('--operator', 'a key that may do everything, for every tenant')
    .option('--database-url <url>', 'the Postgres of the cluster')
    .option('--name <name>', 'recorded as the creator of what the key creates', 'operator');
  runsLocally<CreateOptions>(cli, create, ['json'], async ({ output, options }) => {
    if (!options.operator) {
      throw new PunctualError('USAGE', 'This command creates operator keys only: add --operator.');
    }
    const { config } = resolveSettings(cli, { databaseUrl: options.databaseUrl });
    const url = firstDatabase(config.databaseUrl);
    await migrate(url);
    const made = await createOperatorKey(url, options.name);
    output.document(made, () => `${made.key}\n`);
  });
}
