import type { Command } from 'commander';
import { ApiClient } from '../client/api-client.js';
import type { ResolvedConfig } from '../core/config.js';
import { type LocalCall, runsLocally } from './call.js';
import type { Cli } from './cli.js';
import { anyAborted } from './cli.js';
import { printConfig, resolveSettings } from './configuration.js';
import { DEMO_MODULE, runDemo } from './demo.js';
import { waitUntilIdle } from './idle.js';
import { several, wholeNumber } from './option-values.js';
import { Progress } from './progress-line.js';
import { startUp, type Up } from './up-processes.js';

interface UpOptions {
  readonly port?: number;
  readonly nodes?: number;
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

const DEMO_NODES = 3;
const DEMO_WORKERS = 3;

/** `punctual up`: a whole cluster on one machine, in supervised processes. */
export function addUpCommand(program: Command, cli: Cli): void {
  const command = program
    .command('up')
    .description('start everything on this machine: Postgres, nodes, workers')
    .option('--port <n>', 'port of the first node; others follow (default: 8080)', wholeNumber(0, 65_535))
    .option('--nodes <n>', 'how many nodes (default: 1, with --demo 3)', wholeNumber(1, 100))
    .option('--workers <n>', 'how many workers (default: 1, with --demo 3)', wholeNumber(0, 100))
    .option('--slots <n>', 'jobs that each worker runs at a time', wholeNumber(1, 10_000), 10)
    .option('--data <folder>', 'folder for database, credentials and logs (default: .punctual)')
    .option('--database-url <url>', 'use this Postgres instead of the embedded one')
    .option('--module <file>', 'a module whose tasks the workers run; repeatable', several)
    .option('--demo', 'submit 100 jobs that sleep 1 to 20 s, and show their progress')
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
    const { workers, url, urls, credentials } = up;
    const parts = `${count(urls.length, 'node')}, ${count(workers, 'worker')}, key in ${credentials}`;
    output.document(
      { ready: true, url, urls, nodes: urls.length, workers, credentials },
      () => `ready ${url} (${parts})\n`,
    );
    await serve(cli, up, options, progress);
  } finally {
    progress.line('stopping: workers finish their jobs; press Ctrl-C again to stop at once');
    await up.stop();
    progress.line('stopped');
  }
  if (up.lost.aborted) throw up.lost.reason;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? '' : 's'}`;
}

/** Starts everything; null when it was interrupted before it was ready. */
async function begin(
  cli: Cli,
  resolved: ResolvedConfig,
  options: UpOptions,
  report: (line: string) => void,
): Promise<Up | null> {
  const modules = [...(options.module ?? []), ...(options.demo ? [DEMO_MODULE] : [])];
  const nodes = options.nodes ?? (options.demo ? DEMO_NODES : 1);
  const workers = options.workers ?? (options.demo ? DEMO_WORKERS : 1);
  try {
    return await startUp({
      cli,
      config: resolved.config,
      nodes,
      workers,
      slots: options.slots,
      modules,
      report,
    });
  } catch (error) {
    if (cli.interrupted.aborted) return null;
    throw error;
  }
}

/** Runs the demo if asked to, then waits until the cluster is idle or a signal comes. */
async function serve(cli: Cli, up: Up, options: UpOptions, progress: Progress): Promise<void> {
  const end = AbortSignal.any([cli.interrupted, up.lost]);
  const api = new ApiClient({ urls: [...up.urls], apiKey: up.apiKey });
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
