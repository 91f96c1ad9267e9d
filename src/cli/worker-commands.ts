import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Command } from 'commander';
import type { Logger } from 'pino';
import { messageOf, PunctualError } from '../core/errors.js';
import type { Labels } from '../core/job.js';
import { formatRate, type RateView } from '../core/rate.js';
import type { AnyTask } from '../core/task.js';
import type { WorkerState, WorkerView } from '../core/wire.js';
import { HttpTransport } from '../transport/http-transport.js';
import { HttpWorkerGateway } from '../worker/http-gateway.js';
import { HandlerRunner } from '../worker/runners/handler.js';
import { WorkerRuntime } from '../worker/worker-runtime.js';
import { callsServer, findCredentials, type LocalCall, readPages, runsLocally } from './call.js';
import type { Cli } from './cli.js';
import { openLog, RepeatFilter } from './command-log.js';
import { printConfig, resolveSettings } from './configuration.js';
import { EXIT_INTERRUPTED } from './failure.js';
import { commaList, durationMs, label, rate, several, wholeNumber } from './option-values.js';
import { type Cell, type Column, relativeTime } from './output.js';
import { painterFor, type Style } from './paint.js';

const STYLES: Readonly<Record<WorkerState, Style>> = { alive: 'green', draining: 'yellow', dead: 'red' };

const COLUMNS: readonly Column[] = [
  { header: 'ID' },
  { header: 'NAME', shrink: true },
  { header: 'STATE' },
  { header: 'RUNNING', align: 'right' },
  { header: 'SLOTS', align: 'right' },
  { header: 'RATE', align: 'right' },
  { header: 'TENANTS' },
  { header: 'QUEUES', shrink: true },
  { header: 'TASKS', shrink: true },
  { header: 'SEEN' },
];

/** `punctual worker …`: running, listing and draining workers. */
export function addWorkerCommands(program: Command, cli: Cli): void {
  const worker = program.command('worker').description('run, list and drain workers');
  addRunCommand(worker, cli);
  callsServer(cli, worker.command('list').description('list the workers'), async ({ api, output }) => {
    const page = await readPages<WorkerView>(api, '/v1/workers', {
      signal: cli.interrupted,
    });
    const rows = page.data.map((view): Cell[] => [
      view.id,
      view.name,
      { text: view.state, style: STYLES[view.state] },
      String(view.running),
      String(view.slots),
      view.rate ? formatRate(view.rate) : '-',
      view.shared ? 'all' : 'own',
      view.queues.join(','),
      view.tasks.join(',') || '-',
      relativeTime(view.lastSeen, cli.now()),
    ]);
    output.document(page, () => output.table(COLUMNS, rows));
  });
  const drain = worker
    .command('drain')
    .description('let a worker finish its jobs, take no more, and leave')
    .argument('<id>', 'the id of the worker');
  callsServer(cli, drain, async ({ api, output, args }) => {
    const path = `/v1/workers/${encodeURIComponent(args[0]!)}/drain`;
    const view = await api.request<WorkerView>('POST', path, { signal: cli.interrupted });
    output.document(view, () => `${view.id}  ${view.state}, ${view.running} running\n`);
  });
}

interface RunOptions {
  readonly queues?: readonly string[];
  readonly slots: number;
  readonly rate?: RateView;
  readonly shared?: boolean;
  readonly label?: Labels;
  readonly module?: readonly string[];
  readonly name?: string;
  readonly results?: string;
  readonly drainTimeout?: number;
  readonly logLevel?: string;
  readonly printConfig?: boolean;
}

/**
 * How long a worker goes on after its supervisor was killed: long enough to deliver results to a scheduler that
 * restarts soon.
 */
const ORPHAN_MS = 20_000;
/** How often the same warning is logged; while no node answers, every loop of the worker repeats it. */
const SAME_WARNING_EVERY_MS = 10_000;
/** Signals that make the worker log its status; on macOS Ctrl-T sends SIGINFO. */
const STATUS_SIGNALS =
  process.platform === 'darwin' ? (['SIGUSR2', 'SIGINFO'] as const) : (['SIGUSR2'] as const);

/** `punctual worker run`: a worker in the foreground, with the tasks of the given modules. */
export function addRunCommand(worker: Command, cli: Cli): void {
  const command = worker
    .command('run')
    .description(
      'run a worker; the first SIGTERM or Ctrl-C drains it, the second stops it at once, SIGUSR2 makes it log its status',
    )
    .option(
      '--queues <names>',
      'queues to take jobs from, separated by commas; * for all, also future ones (default: default)',
      commaList,
    )
    .option('--slots <n>', 'jobs to run at a time', wholeNumber(1, 10_000), 10)
    .option('--rate <rate>', 'the most jobs to start in a time, such as 100/1s', rate)
    .option('--shared', 'take jobs of all tenants; needs an operator key')
    .option('--label <label>', 'a label that jobs may require, such as region=eu; repeatable', label)
    .option('--module <file>', 'a module whose exported tasks it runs; repeatable', several)
    .option('--name <name>', 'its name in lists (default: host and process)')
    .option(
      '--results <folder>',
      'folder for results that no node has accepted yet, so that they survive a restart (default: results/NAME in the data folder if --name is given, else in memory)',
    )
    .option(
      '--drain-timeout <duration>',
      'stop at once when draining takes longer (default: no limit)',
      durationMs,
    )
    .option('--log-level <level>', 'trace, debug, info, warn, error or silent (default: info)')
    .option('--print-config', 'show every setting and where it came from, and exit');
  runsLocally<RunOptions>(cli, command, ['url', 'apiKey', 'tenant', 'json'], runWorker);
}

async function runWorker({ cli, output, options, exitWith }: LocalCall<RunOptions>): Promise<void> {
  const { url, apiKey, tenant, logLevel } = options;
  const resolved = resolveSettings(cli, { url, apiKey, logLevel });
  if (options.printConfig) return printConfig(output, resolved);
  const log = openLog(cli.stderr, resolved.config.logLevel, painterFor(cli.stderr, cli.environment));
  const tasks = await loadTasks(cli.folder, options.module ?? []);
  if (tasks.length === 0)
    log.warn('the worker has no tasks and will get no jobs: name a module with --module');
  const credentials = findCredentials(cli, options);
  const transport = new HttpTransport({ ...credentials, ...(tenant !== undefined && { tenant }) });
  const keepResultsIn = resultsFolder(cli, options, resolved.config.data);
  const repeats = new RepeatFilter(SAME_WARNING_EVERY_MS, cli.now);
  const runtime = new WorkerRuntime({
    gateway: new HttpWorkerGateway(transport),
    runners: [new HandlerRunner(tasks)],
    options: {
      slots: options.slots,
      ...(options.name !== undefined && { name: options.name }),
      ...(options.queues !== undefined && { queues: options.queues }),
      ...(options.rate !== undefined && { rate: options.rate }),
      ...(options.shared && { shared: true }),
      ...(options.label !== undefined && { labels: options.label }),
      ...(keepResultsIn !== null && { keepResultsIn }),
      ...(options.drainTimeout !== undefined && { drainTimeoutMs: options.drainTimeout }),
      events: {
        onRegistered: (workerId) => {
          log.info({ workerId, tasks: tasks.map((task) => task.name) }, 'registered');
          cli.supervisor?.ready();
        },
        onWarning: (warning) => {
          if (repeats.isNew(warning.message)) log.warn({ code: warning.code }, warning.message);
        },
      },
    },
  });
  drainWhenAbandoned(cli, runtime, log);
  const tellStatus = () => log.info(runtime.status(), 'status');
  for (const signal of STATUS_SIGNALS) process.on(signal, tellStatus);
  try {
    if ((await runtime.run()) === 'stopped') exitWith(EXIT_INTERRUPTED);
  } finally {
    for (const signal of STATUS_SIGNALS) process.off(signal, tellStatus);
    await transport.close();
  }
}

/** The folder for kept results: the given one, or one by the worker's name; null for a worker without a name. */
function resultsFolder(cli: Cli, { results, name }: RunOptions, dataFolder: string): string | null {
  if (results !== undefined) return resolve(cli.folder, results);
  if (name === undefined) return null;
  // The name may contain slashes or dots; it must not lead out of the folder.
  const folder = encodeURIComponent(name).replaceAll('.', '%2E');
  return join(resolve(cli.folder, dataFolder), 'results', folder);
}

/** Drains the worker when the terminal is closed or the supervisor is gone; the runtime itself handles SIGTERM and SIGINT. */
function drainWhenAbandoned(cli: Cli, runtime: WorkerRuntime, log: Logger): void {
  cli.interrupted.addEventListener('abort', () => {
    log.info(runtime.status(), 'draining');
    // The runtime's own signal handler must run first: it takes a signal during a drain as the order to stop.
    setImmediate(() => void runtime.drain());
  });
  cli.supervisor?.gone.addEventListener('abort', () => {
    log.warn(runtime.status(), 'the supervisor is gone; draining');
    void runtime.drain();
    setTimeout(() => void runtime.stop(), ORPHAN_MS).unref();
  });
}

/**
 * Whether a value was made by `task()`. Its shape decides, because a module may import another copy of the package.
 */
function isTask(value: unknown): value is AnyTask {
  if (typeof value !== 'object' || value === null) return false;
  const { name, defaults, handler } = value as Partial<AnyTask>;
  return typeof name === 'string' && typeof defaults === 'object' && typeof handler === 'function';
}

/** All tasks that the modules export; two different tasks of the same name are an error. */
export async function loadTasks(folder: string, modules: readonly string[]): Promise<AnyTask[]> {
  const tasks = new Map<string, AnyTask>();
  for (const module of modules) {
    const found = Object.values(await load(folder, module)).filter(isTask);
    if (found.length === 0) {
      throw new PunctualError(
        'USAGE',
        `${module} exports no task; export what \`task(name, handler)\` returns.`,
      );
    }
    for (const task of found) {
      const known = tasks.get(task.name);
      if (known !== undefined && known !== task) {
        throw new PunctualError(
          'USAGE',
          `The task ${task.name} of ${module} is exported twice; rename one of them.`,
        );
      }
      tasks.set(task.name, task);
    }
  }
  return [...tasks.values()];
}

async function load(folder: string, module: string): Promise<Record<string, unknown>> {
  try {
    return await import(pathToFileURL(resolve(folder, module)).href);
  } catch (error) {
    throw new PunctualError('USAGE', `The module ${module} cannot be loaded: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}
