import type { Command } from 'commander';
import { HeapPace } from '../host/heap-pace.js';
import { openLineLog } from '../host/line-log.js';
import { type LocalCall, runsLocally } from './call.js';
import type { Cli } from './cli.js';
import { anyAborted } from './cli.js';
import { printConfig, resolveSettings, warnOfVariables } from './configuration.js';
import { wholeNumber } from './option-values.js';

interface ServerOptions {
  readonly databaseUrl?: string;
  readonly port?: number;
  readonly host?: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly insecure?: boolean;
  readonly advertiseUrl?: string;
  readonly id?: string;
  readonly paused?: boolean;
  readonly logLevel?: string;
  readonly printConfig?: boolean;
}

/** `punctual server`: one node, in the foreground. */
export function addServerCommand(program: Command, cli: Cli): void {
  const command = program
    .command('server')
    .description('run a node')
    .option('--database-url <url>', 'the Postgres of the cluster')
    .option('--port <n>', 'port to listen on, 0 for any free one (default: 8080)', wholeNumber(0, 65_535))
    .option('--host <address>', 'address to listen on (default: 127.0.0.1)')
    .option(
      '--tls-cert <file>',
      'the certificate and its chain, in PEM: serve HTTPS; read again when it changes',
    )
    .option('--tls-key <file>', 'the private key of the certificate, in PEM')
    .option('--insecure', 'listen on a public address without TLS')
    .option('--advertise-url <url>', 'address under which others reach this node')
    .option('--id <id>', 'the name of the node (default: a random one)')
    .option('--paused', 'pause dispatch first: no job starts until `cluster resume`')
    .option('--log-level <level>', 'trace, debug, info, warn, error or silent (default: info)')
    .option('--print-config', 'show every setting and where it came from, and exit');
  runsLocally<ServerOptions>(cli, command, ['json'], runServer);
}

async function runServer({ cli, output, options }: LocalCall<ServerOptions>): Promise<void> {
  const { id, paused = false, printConfig: print, ...settings } = options;
  const resolved = resolveSettings(cli, settings);
  if (print) return printConfig(output, resolved);
  const { config } = resolved;
  const log = openLineLog(cli.stderr, config.logLevel, cli.environment);
  warnOfVariables(cli, (text) => log.warn({}, text));
  // Imported here, so that other commands start faster without the code of a node.
  const { startNode } = await import('../node/start-node.js');
  const pace = new HeapPace().start();
  const node = await startNode({ config, log, paused, ...(id !== undefined && { id }) });
  try {
    output.document({ ready: true, url: node.url }, () => `ready ${node.url}\n`);
    cli.supervisor?.ready();
    await anyAborted(cli.interrupted, ...(cli.supervisor ? [cli.supervisor.gone] : []));
  } finally {
    await node.stop();
    await pace.stop();
  }
}
