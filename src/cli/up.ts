import type { Command } from 'commander';
import { ApiClient } from '../client/api-client.js';
import type { ResolvedConfig } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import { type LocalCall, runsLocally } from './call.js';
import type { Cli } from './cli.js';
import { printConfig, resolveSettings } from './configuration.js';
import { DEMO_MODULE, runDemo } from './demo.js';
import { waitUntilIdle } from './idle.js';
import { several, wholeNumber } from './option-values.js';
import { Progress } from './progress.js';
import { startUp, type Up } from './up-processes.js';
import { anyAborted } from './wait.js';

interface UpOptions {
  readonly port?: number;
  readonly nodes: number;
  readonly workers?: number;
  readonly slots: number;
  readonly data?: string;
  readonly databaseUrl?: string;
  readonly module?: readonly string[];
  readonly demo?: boolean;
  readonly untilIdle?: boolean;
  readonly logLevel?: string;
  readonly printConfig?: boolean;
}

const DEMO_WORKERS = 3;

/** `punctual up`: everything on one machine, in processes of their own that are looked after. */
export function addUpCommand(program: Command, cli: Cli): void {
  const command = program
    .command('up')
    .description('start everything on this machine: Postgres, a node, workers')
    .option('--port <n>', 'port of the node (default: 8080)', wholeNumber(0, 65_535))
    .option('--nodes <n>', 'how many nodes', wholeNumber(1, 100), 1)
    .option('--workers <n>', 'how many workers (default: 1, with --demo 3)', wholeNumber(0, 100))
    .option('--slots <n>', 'jobs that each worker runs at a time', wholeNumber(1, 10_000), 10)
    .option('--data <folder>', 'folder for database, credentials and logs (default: .punctual)')
    .option('--database-url <url>', 'use this Postgres instead of the embedded one')
    .option('--module <file>', 'a module whose tasks the workers run; repeatable', several)
    .option('--demo', 'submit 100 jobs that sleep 1 to 20 s, and show how they get on')
    .option('--until-idle', 'exit when no job is left to run')
    .option('--log-level <level>', 'level of the logs in DATA/logs (default: info)')
    .option('--print-config', 'show every setting and where it came from, and exit');
  runsLocally<UpOptions>(cli, command, ['json'], runUp);
}

async function runUp({ cli, output, options }: LocalCall<UpOptions>): Promise<void> {
  const { port, data, databaseUrl, logLevel } = options;
  const resolved = resolveSettings(cli, { port, data, databaseUrl, logLevel });
  if (options.printConfig) return printConfig(output, resolved);
  const progress = new Progress({ screen: cli.stderr, now: cli.now });
  const up = await begin(cli, resolved, options, (line) => progress.line(line));
  if (up === null) return;
  try {
    const { workers, url, credentials } = up;
    output.document(
      { ready: true, url, nodes: 1, workers, credentials },
      () =>
        `ready ${url} (1 node, ${workers} ${workers === 1 ? 'worker' : 'workers'}, key in ${credentials})\n`,
    );
    await serve(cli, up, options, progress);
  } finally {
    progress.line('stopping: workers finish what they run; press Ctrl-C again to stop at once');
    await up.stop();
    progress.line('stopped');
  }
  if (up.lost.aborted) throw up.lost.reason;
}

/** Starts everything; null when it was interrupted before it was ready. */
async function begin(
  cli: Cli,
  resolved: ResolvedConfig,
  options: UpOptions,
  report: (line: string) => void,
): Promise<Up | null> {
  if (options.nodes > 1) {
    throw new PunctualError('USAGE', 'This version runs one node; leave --nodes out or set it to 1.');
  }
  const modules = [...(options.module ?? []), ...(options.demo ? [DEMO_MODULE] : [])];
  const workers = options.workers ?? (options.demo ? DEMO_WORKERS : 1);
  try {
    return await startUp({ cli, config: resolved.config, workers, slots: options.slots, modules, report });
  } catch (error) {
    if (cli.interrupted.aborted) return null;
    throw error;
  }
}

/** Runs the show and waits for the end: idle if that was asked for, else a signal. */
async function serve(cli: Cli, up: Up, options: UpOptions, progress: Progress): Promise<void> {
  const end = AbortSignal.any([cli.interrupted, up.lost]);
  const api = new ApiClient({ urls: [up.url], apiKey: up.apiKey });
  try {
    if (options.demo) await runDemo(api, progress, end);
    if (options.untilIdle) {
      await waitUntilIdle(api, progress, end);
      progress.line('no job is left to run');
      return;
    }
    if (options.demo) progress.line('press Ctrl-C to stop');
    await anyAborted(end);
  } catch (error) {
    if (!end.aborted) throw error;
  } finally {
    await api.close();
  }
}
