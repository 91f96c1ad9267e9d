import type { Command } from 'commander';
import { type MigrationReport, migrate, migrationStatus } from '../store/migrate.js';
import { runsLocally } from './call.js';
import type { Cli } from './cli.js';
import { firstDatabase, resolveSettings } from './configuration.js';

interface DatabaseOptions {
  readonly databaseUrl?: string;
}

/** `punctual db …`: migrating the cluster's database. */
export function addDatabaseCommands(program: Command, cli: Cli): void {
  const db = program.command('db').description('migrate the database, or show its version');
  addPass(db, cli, 'migrate', 'apply missing migrations; nodes do that by themselves, too', migrate);
  addPass(db, cli, 'status', 'show which migrations are applied and which are missing', migrationStatus);
}

function addPass(
  db: Command,
  cli: Cli,
  verb: 'migrate' | 'status',
  description: string,
  pass: (databaseUrl: string) => Promise<MigrationReport>,
): void {
  const command = db
    .command(verb)
    .description(description)
    .option('--database-url <url>', 'the Postgres of the cluster');
  runsLocally<DatabaseOptions>(cli, command, ['json'], async ({ output, options }) => {
    const { config } = resolveSettings(cli, { databaseUrl: options.databaseUrl });
    const report = await pass(firstDatabase(config.databaseUrl));
    output.document(report, () =>
      output.details([
        ['server', `Postgres ${report.serverVersion}`],
        ['schema', String(report.at)],
        [verb === 'migrate' ? 'applied now' : 'applied', report.applied.join(', ') || 'nothing'],
        ['missing', report.pending.join(', ') || 'nothing'],
      ]),
    );
  });
}
