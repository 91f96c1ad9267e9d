import type { Command } from 'commander';
import { type LocalCall, runsLocally } from './call.js';
import type { Cli } from './cli.js';
import { resolveSettings } from './configuration.js';
import {
  type Check,
  checkDatabase,
  checkDataFolder,
  checkNodeVersion,
  checkServer,
} from './doctor-checks.js';
import type { Output } from './output.js';
import type { Style } from './paint.js';

interface DoctorOptions {
  readonly databaseUrl?: string;
  readonly data?: string;
}

const STYLES: Readonly<Record<Check['status'], Style>> = { ok: 'green', warn: 'yellow', fail: 'red' };

/** `punctual doctor`: what is wrong here, and what to do about it. */
export function addDoctorCommand(program: Command, cli: Cli): void {
  const command = program
    .command('doctor')
    .description('check this machine, the nodes and the database, and say what to do')
    .option('--database-url <url>', 'check this Postgres too')
    .option('--data <folder>', 'the folder of `punctual up` (default: .punctual)');
  runsLocally<DoctorOptions>(cli, command, ['url', 'apiKey', 'tenant', 'json'], runDoctor);
}

async function runDoctor({ cli, output, options, exitWith }: LocalCall<DoctorOptions>): Promise<void> {
  const { databaseUrl, data } = options;
  const { config } = resolveSettings(cli, { databaseUrl, data });
  const checks: Check[] = [
    checkNodeVersion(process.versions.node),
    ...(await checkDataFolder(cli, config.data)),
    ...(await checkServer(cli, options)),
    ...(config.databaseUrl === '' ? [] : await checkDatabase(config.databaseUrl)),
  ];
  const ok = checks.every((check) => check.status !== 'fail');
  output.document({ ok, checks }, () => checks.map((check) => renderCheck(output, check)).join(''));
  if (!ok) exitWith(1);
}

function renderCheck(output: Output, check: Check): string {
  const status = output.paint(STYLES[check.status], check.status.padEnd(4));
  const advice = check.advice ? `      ${check.advice}\n` : '';
  return `${status}  ${check.name}: ${check.detail}\n${advice}`;
}
