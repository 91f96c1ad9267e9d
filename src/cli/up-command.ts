import { stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import type { Command } from 'commander';
import { ApiClient } from '../client/api-client.js';
import type { ResolvedConfig } from '../core/config.js';
import { humanDuration } from '../core/duration.js';
import { PunctualError } from '../core/errors.js';
import { type LocalCall, runsLocally } from './call.js';
import type { Cli } from './cli.js';
import { anyAborted } from './cli.js';
import { printConfig, resolveSettings, warnOfVariables } from './configuration.js';
import { DEMO_MODULE, endDemo, runDemo } from './demo.js';
import { waitUntilIdle } from './idle.js';
import { several, wholeNumber } from './option-values.js';
import { plural } from './output.js';
import { Progress } from './progress-line.js';
import { makeSignInLink } from './sign-in-link.js';
import type { Up } from './up-processes.js';

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
  readonly paused?: boolean;
  readonly logLevel?: string;
  readonly printConfig?: boolean;
}

/** Addresses that only this machine can reach. */
const LOOPBACK: readonly string[] = ['127.0.0.1', '::1', 'localhost'];
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
    .option('--paused', 'pause dispatch first: no job starts until `cluster resume`')
    .option('--log-level <level>', 'level of the logs in DATA/logs (default: info)')
    .option('--print-config', 'show every setting and where it came from, and exit');
  runsLocally<UpOptions>(cli, command, ['json'], runUp);
}

async function runUp({ cli, output, options }: LocalCall<UpOptions>): Promise<void> {
  const { port, data, databaseUrl, logLevel } = options;
  const resolved = resolveSettings(cli, { port, data, databaseUrl, logLevel });
  if (options.printConfig) return printConfig(output, resolved);
  const progress = new Progress({ screen: cli.stderr, now: cli.now });
  warnOfVariables(cli, (text) => progress.line(`warning: ${text}`));
  const up = await begin(cli, resolved, options, (line) => progress.line(line));
  if (up === null) return;
  try {
    const { workers, url, urls, credentials } = up;
    const open = await signInLink(up, cli.interrupted);
    const parts = `${plural(urls.length, 'node')}, ${plural(workers, 'worker')}, key in ${credentials}`;
    output.document(
      { ready: true, url, urls, nodes: urls.length, workers, credentials, open },
      () => `ready ${url} (${parts})\n${open === null ? '' : `open ${open}\n`}`,
    );
    if (options.paused) progress.line('dispatch is paused: `punctual cluster resume` starts jobs');
    await serve(cli, up, options, progress);
  } finally {
    const patience = humanDuration(up.workerStopMs);
    progress.line(
      `stopping: workers have ${patience} to finish their jobs, then they are killed; press Ctrl-C again to stop at once`,
    );
    await up.stop();
    progress.line('stopped');
  }
  if (up.lost.aborted) throw up.lost.reason;
}

/** The link that signs in to the dashboard once; null if no node could make it: everything else works without it. */
async function signInLink({ urls, apiKey, url }: Up, signal: AbortSignal): Promise<string | null> {
  const api = new ApiClient({ urls: [...urls], apiKey });
  try {
    return (await makeSignInLink(api, url, signal)).url;
  } catch {
    return null;
  } finally {
    await api.close();
  }
}

/**
 * On a machine of one's own, whoever has the key that is written for its owner may run commands on it anyway. A cluster that
 * others can reach allows them only if it is told to.
 */
function allowsCommands({ config, sources }: ResolvedConfig): boolean {
  return sources.allowCommands === 'default' ? LOOPBACK.includes(config.host) : config.allowCommands;
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
  await requireModules(cli.folder, modules);
  // Imported here, so that other commands start faster without the code of the embedded Postgres.
  const { startUp } = await import('./up-processes.js');
  try {
    return await startUp({
      cli,
      config: resolved.config,
      nodes,
      workers,
      slots: options.slots,
      modules,
      paused: options.paused ?? false,
      allowCommands: allowsCommands(resolved),
      report,
    });
  } catch (error) {
    if (cli.interrupted.aborted) return null;
    throw error;
  }
}

/** Refuses a module that is not there, before anything is made or started. */
async function requireModules(folder: string, modules: readonly string[]): Promise<void> {
  for (const module of modules) {
    const found = await stat(resolve(folder, module)).catch(() => null);
    if (found?.isFile()) continue;
    throw new PunctualError('USAGE', `The module ${module} cannot be loaded: there is no such file.`);
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
    if (options.demo && !up.lost.aborted) await endDemo(api, progress);
    await api.close();
  }
}
