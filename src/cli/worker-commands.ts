import { join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { PunctualError } from '../core/errors.js';
import type { ExecLimits, Isolation, Labels, TargetType } from '../core/job.js';
import type { Log } from '../core/log.js';
import type { Style } from '../core/paint.js';
import { formatRate, type RateView } from '../core/rate.js';
import type { WorkerState, WorkerView } from '../core/wire.js';
import { makeDataFolder } from '../host/data-folder.js';
import { openLineLog } from '../host/line-log.js';
import type { WorkerRuntime } from '../worker/worker-runtime.js';
import {
  callsServer,
  findCredentials,
  type LocalCall,
  readPages,
  runsLocally,
  type ServerCall,
} from './call.js';
import type { Cli } from './cli.js';
import { printConfig, resolveSettings, warnOfVariables } from './configuration.js';
import { addIsolationOptions } from './exec-options.js';
import { EXIT_INTERRUPTED } from './failure.js';
import {
  commaList,
  durationMs,
  label,
  listOf,
  rate,
  several,
  targetList,
  wholeNumber,
} from './option-values.js';
import { type Cell, type Column, relativeTime } from './output.js';
import { loadTasks } from './task-modules.js';
import { WIDE, watched } from './watch.js';

const STYLES: Readonly<Record<WorkerState, Style>> = { alive: 'green', draining: 'yellow', dead: 'red' };

const COLUMNS: readonly Column[] = [
  { header: 'ID', shrink: 'id' },
  { header: 'NAME', shrink: 'name' },
  { header: 'STATE' },
  { header: 'RUNNING', align: 'right' },
  { header: 'SLOTS', align: 'right' },
  { header: 'RATE', align: 'right', drop: 1 },
  { header: 'TENANTS', drop: 2 },
  { header: 'QUEUES', shrink: true, drop: 4 },
  { header: 'TASKS', shrink: true, drop: 3 },
  { header: 'SEEN' },
];

/** `punctual worker …`: running, listing and draining workers. */
export function addWorkerCommands(program: Command, cli: Cli): void {
  const worker = program.command('worker').description('run, list and drain workers');
  addRunCommand(worker, cli);
  const list = worker
    .command('list')
    .description('list the workers')
    .option(...WIDE);
  const show = async ({ api, output }: ServerCall<object>): Promise<void> => {
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
  };
  callsServer(cli, list, watched(list, show, { events: () => ({ types: ['worker.*', 'job.*'] }) }));
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
  readonly targets?: readonly TargetType[];
  readonly allowAddress?: readonly string[];
  readonly publicUrl?: string;
  readonly slots: number;
  readonly rate?: RateView;
  readonly shared?: boolean;
  readonly label?: Labels;
  readonly module?: readonly string[];
  readonly publish?: true | 'overwrite';
  readonly name?: string;
  readonly results?: string;
  readonly execFolder?: string;
  readonly limit?: ExecLimits;
  readonly isolation?: Isolation;
  readonly drainTimeout?: number;
  readonly logLevel?: string;
  readonly printConfig?: boolean;
}

/**
 * How long a worker goes on after its supervisor was killed: long enough to deliver results to a scheduler that
 * restarts soon.
 */
const ORPHAN_MS = 20_000;
const WITHOUT_MODULE =
  'A worker without tasks gets no jobs; name a module with --module FILE, or let it make calls with --targets http, or run programs with --targets exec.';
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
      'queues to take jobs from, separated by commas; * for all, also future ones (default: those of the tasks)',
      commaList,
    )
    .option(
      '--targets <names>',
      'what it runs: handler, http and exec, separated by commas; handlers always if it has tasks (default: handler)',
      targetList,
    )
    .option(
      '--allow-address <range>',
      'an address or CIDR range that calls of http targets may go to although it is not public; repeatable',
      several,
    )
    .option(
      '--public-url <url>',
      'where receivers of calls report (default: the address that the worker uses)',
    )
    .option('--slots <n>', 'jobs to run at a time', wholeNumber(1, 10_000), 10)
    .option('--rate <rate>', 'the most jobs to start in a time, such as 100/1s', rate)
    .option('--shared', 'take jobs of all tenants; needs an operator key')
    .option('--label <label>', 'a label that jobs may require, such as region=eu; repeatable', label)
    .option('--module <file>', 'a module whose exported tasks it runs; at least one, repeatable', several)
    .addOption(
      new Option(
        '--publish [mode]',
        'publish the options of its tasks, so that jobs submitted by name take them; what people have defined stays, unless told to overwrite it',
      ).choices(['overwrite']),
    )
    .option('--name <name>', 'its name in lists (default: host and process)')
    .option(
      '--results <folder>',
      'folder for results that no node has accepted yet, so that they survive a restart (default: results/NAME in the data folder if --name is given, else in memory)',
    )
    .option(
      '--exec-folder <folder>',
      'folder for programs and binaries (default: exec/NAME in the data folder if --name is given, else a temporary one)',
    )
    .option(
      '--drain-timeout <duration>',
      'stop at once when draining takes longer (default: no limit)',
      durationMs,
    )
    .option('--log-level <level>', 'trace, debug, info, warn, error or silent (default: info)')
    .option('--print-config', 'show every setting and where it came from, and exit');
  addIsolationOptions(command);
  runsLocally<RunOptions>(cli, command, ['url', 'apiKey', 'tenant', 'json'], runWorker);
}

async function runWorker({ cli, output, options, exitWith }: LocalCall<RunOptions>): Promise<void> {
  const { url, apiKey, tenant, logLevel } = options;
  const { publicUrl } = options;
  const resolved = resolveSettings(cli, { url, apiKey, logLevel, publicUrl });
  if (options.printConfig) return printConfig(output, resolved);
  const log = openLineLog(cli.stderr, resolved.config.logLevel, cli.environment);
  warnOfVariables(cli, (text) => log.warn({}, text));
  const { module: modules = [] } = options;
  const { config } = resolved;
  const targets = options.targets ?? ['handler'];
  const allowAddresses = options.allowAddress ?? listOf(config.allowAddresses);
  // `punctual up` starts its workers whether or not there are tasks yet; whoever starts one alone has forgotten something.
  if (modules.length === 0 && targets.every((target) => target === 'handler') && !cli.supervisor)
    throw new PunctualError('USAGE', WITHOUT_MODULE);
  const tasks = await loadTasks(cli.folder, modules);
  const credentials = findCredentials(cli, options);
  // Imported here, so that other commands start faster without the code of a worker.
  const [{ HttpTransport }, { HttpWorkerGateway }, { runnersOf }, { WorkerRuntime }] = await Promise.all([
    import('../transport/http-transport.js'),
    import('../worker/http-gateway.js'),
    import('../worker/runners/runners.js'),
    import('../worker/worker-runtime.js'),
  ]);
  const transport = new HttpTransport({ ...credentials, ...(tenant !== undefined && { tenant }) });
  const keepResultsIn = await ownFolder(cli, 'results', options.results, options.name, config.data);
  const execFolder = targets.includes('exec')
    ? await ownFolder(cli, 'exec', options.execFolder, options.name, config.data)
    : null;
  const runtime = new WorkerRuntime({
    gateway: new HttpWorkerGateway(transport),
    runners: runnersOf(tasks, { targets }),
    options: {
      targets,
      allowAddresses,
      ...(config.publicUrl !== '' && { publicUrl: config.publicUrl }),
      slots: options.slots,
      ...(options.name !== undefined && { name: options.name }),
      ...(options.queues !== undefined && { queues: options.queues }),
      ...(options.rate !== undefined && { rate: options.rate }),
      ...(options.shared && { shared: true }),
      ...(options.label !== undefined && { labels: options.label }),
      ...(options.publish !== undefined && { publish: options.publish }),
      ...(keepResultsIn !== null && { keepResultsIn }),
      exec: {
        ...(execFolder !== null && { folder: execFolder }),
        ...(options.limit !== undefined && { limits: options.limit }),
        ...(options.isolation !== undefined && { isolation: options.isolation }),
        allowCommands: config.allowCommands,
        allowScripts: config.allowScripts,
        controlGroup: config.controlGroup,
      },
      ...(options.drainTimeout !== undefined && { drainTimeoutMs: options.drainTimeout }),
      log,
      events: { onRegistered: () => cli.supervisor?.ready() },
    },
  });
  drainWhenAbandoned(cli, runtime, log);
  const tellStatus = () => log.info({ ...runtime.status() }, 'status');
  for (const signal of STATUS_SIGNALS) process.on(signal, tellStatus);
  try {
    if ((await runtime.run()) === 'stopped') exitWith(EXIT_INTERRUPTED);
  } finally {
    for (const signal of STATUS_SIGNALS) process.off(signal, tellStatus);
    await transport.close();
  }
}

/** A folder of the worker's own: the given one, or one by its name; null for a worker without a name. */
async function ownFolder(
  cli: Cli,
  purpose: 'results' | 'exec',
  given: string | undefined,
  name: string | undefined,
  data: string,
): Promise<string | null> {
  if (given !== undefined) return resolve(cli.folder, given);
  if (name === undefined) return null;
  // The name may contain slashes or dots; it must not lead out of the folder.
  const folder = encodeURIComponent(name).replaceAll('.', '%2E');
  const dataFolder = resolve(cli.folder, data);
  // If it cannot be made, whoever opens it says so.
  await makeDataFolder(dataFolder).catch(() => undefined);
  return join(dataFolder, purpose, folder);
}

/** Drains the worker when the terminal is closed or the supervisor is gone; the runtime itself handles SIGTERM and SIGINT. */
function drainWhenAbandoned(cli: Cli, runtime: WorkerRuntime, log: Log): void {
  cli.interrupted.addEventListener('abort', () => {
    // The runtime's own signal handler must run first: it takes a signal during a drain as the order to stop.
    setImmediate(() => void runtime.drain());
  });
  cli.supervisor?.gone.addEventListener('abort', () => {
    log.warn({ ...runtime.status() }, 'the supervisor is gone; draining');
    void runtime.drain();
    setTimeout(() => void runtime.stop(), ORPHAN_MS).unref();
  });
}
