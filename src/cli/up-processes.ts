import { hostname } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Config } from '../core/config.js';
import { PunctualError } from '../core/errors.js';
import { mustBePrivate } from '../node/listen.js';
import { migrate, settingsThrough } from '../store/migrate.js';
import { createOperatorKey, verifyOperatorKey } from '../store/operator-key.js';
import { pauseBeforeStart } from '../store/pause-before-start.js';
import type { Cli } from './cli.js';
import { LogFile } from './command-log.js';
import { credentialsPath, firstDatabase, readApiKey, writeCredentials } from './configuration.js';
import { listOf } from './option-values.js';
import { SupervisedProcess } from './supervised-process.js';
import { embeddedDatabase, ownDatabase, type UpDatabase } from './up-database.js';
import { claimUpPorts, markRunning, reachableHost, unmarkRunning } from './up-ports.js';
import { findOrMakeSecretKey } from './up-secret-key.js';

interface UpPlan {
  readonly cli: Cli;
  readonly config: Config;
  readonly nodes: number;
  readonly workers: number;
  readonly slots: number;
  readonly modules: readonly string[];
  readonly paused: boolean;
  /** Whether targets may name commands of this machine. */
  readonly allowCommands: boolean;
  readonly report: (line: string) => void;
}

/** Everything that `punctual up` keeps running. */
export interface Up {
  /** The address of the first node. */
  readonly url: string;
  /** The addresses of all nodes. */
  readonly urls: readonly string[];
  readonly apiKey: string;
  readonly workers: number;
  /** The path of the credentials file, relative to the working folder. */
  readonly credentials: string;
  /** Aborts with an error when the database is lost for good. */
  readonly lost: AbortSignal;
  /** How long workers may take to finish their jobs before they are killed. */
  readonly workerStopMs: number;
  /** Stops the workers, which finish their jobs, then the nodes, then the database. */
  stop(): Promise<void>;
}

const MAIN = fileURLToPath(new URL('./main.js', import.meta.url));
const LOOPBACK: readonly string[] = ['127.0.0.0/8', '::1'];
const NODE_STOP_MS = 15_000;
const WORKER_STOP_MS = 25_000;

/** What was started, to be stopped in reverse order. */
class Started {
  readonly #steps: (() => Promise<unknown>)[] = [];

  add(stop: () => Promise<unknown>): void {
    this.#steps.push(stop);
  }

  async stop(): Promise<void> {
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) await step();
  }
}

/** Starts the database, the nodes and the workers; stops them again when a step fails. */
export async function startUp(plan: UpPlan): Promise<Up> {
  const { cli, config } = plan;
  mustBePrivate(config);
  if (config.tlsCert !== '') {
    const detail = '`punctual up` serves HTTP on this machine; for TLS run nodes with `punctual server`.';
    throw new PunctualError('CONFIGURATION', detail);
  }
  const dataFolder = resolve(cli.folder, config.data);
  const ports = await claimUpPorts(dataFolder, config.host, config.port, plan.nodes);
  const started = new Started();
  try {
    return await startAll(plan, dataFolder, ports, started);
  } catch (error) {
    await started.stop();
    throw error;
  }
}

async function startAll(
  plan: UpPlan,
  dataFolder: string,
  ports: readonly number[],
  started: Started,
): Promise<Up> {
  const { cli, config } = plan;
  const lost = new AbortController();
  const database = await openDatabase(plan, dataFolder, lost);
  started.add(() => database.stop());
  await markRunning(dataFolder, config.host, ports);
  started.add(() => unmarkRunning(dataFolder));
  cli.interrupted.throwIfAborted();
  // Before anything is changed: the nodes would refuse a pooler in transaction mode.
  const settingsBy = await settingsThrough(database.url);
  await migrate(database.url);
  // Not by an option of the nodes: one that is started again later must not pause the cluster again.
  if (plan.paused) await pauseBeforeStart(database.url, settingsBy);
  const urls = ports.map((port) => `http://${reachableHost(config.host)}:${port}`);
  const apiKey = await findOrCreateKey(dataFolder, database.url);
  const secretKey = config.secretKey === '' ? await findOrMakeSecretKey(dataFolder) : config.secretKey;
  await writeCredentials(dataFolder, { url: urls[0]!, urls, apiKey });
  const nodes = ports.map((port, index) =>
    launch(plan, dataFolder, {
      name: `node-${index + 1}`,
      args: serverArguments(config, index + 1, port),
      secrets: { PUNCTUAL_DATABASE_URL: database.url, PUNCTUAL_SECRET_KEY: secretKey },
      stopTimeoutMs: NODE_STOP_MS,
    }),
  );
  started.add(() => Promise.all(nodes.map((node) => node.stop())));
  await unlessInterrupted(Promise.all(nodes.map((node) => node.start())), cli.interrupted);
  const workers = Array.from({ length: plan.workers }, (_, index) =>
    launch(plan, dataFolder, {
      name: `worker-${index + 1}`,
      args: workerArguments(plan, `worker-${index + 1}`, urls.join(',')),
      secrets: { PUNCTUAL_API_KEY: apiKey },
      stopTimeoutMs: WORKER_STOP_MS,
    }),
  );
  // Workers stop at the same time, so that the slowest determines how long it takes.
  started.add(() => Promise.all(workers.map((worker) => worker.stop())));
  await unlessInterrupted(Promise.all(workers.map((worker) => worker.start())), cli.interrupted);
  return {
    url: urls[0]!,
    urls,
    apiKey,
    workers: plan.workers,
    credentials: relative(cli.folder, credentialsPath(dataFolder)),
    lost: lost.signal,
    workerStopMs: WORKER_STOP_MS,
    stop: () => started.stop(),
  };
}

function openDatabase(plan: UpPlan, dataFolder: string, lost: AbortController): Promise<UpDatabase> {
  const { config, report } = plan;
  if (config.databaseUrl !== '') return Promise.resolve(ownDatabase(firstDatabase(config.databaseUrl)));
  return embeddedDatabase(dataFolder, report, (reason) =>
    lost.abort(new PunctualError('EMBEDDED_POSTGRES', `${reason}.`)),
  );
}

/** The key of an earlier start if the database still has it, else a new one. */
async function findOrCreateKey(dataFolder: string, databaseUrl: string): Promise<string> {
  const kept = await readApiKey(dataFolder);
  if (kept !== null && (await verifyOperatorKey(databaseUrl, kept))) return kept;
  return (await createOperatorKey(databaseUrl, 'punctual up')).key;
}

/**
 * The id of a node is its name here. A database of one's own may have other nodes, also of another `punctual up`, so
 * there the id also says where the node is.
 */
function serverArguments({ host, databaseUrl }: Config, number: number, port: number): string[] {
  const name = `node-${number}`;
  const id = databaseUrl === '' ? name : `${name}-${hostname()}-${port}`;
  return ['server', '--host', host, '--port', String(port), '--id', id];
}

function workerArguments(plan: UpPlan, name: string, url: string): string[] {
  const modules = plan.modules.flatMap((module) => ['--module', module]);
  const slots = ['--slots', String(plan.slots)];
  // So that a job that is submitted by name from the shell takes what the module says about its task.
  const publish = plan.modules.length > 0 ? ['--publish'] : [];
  // On a machine of one's own, receivers run beside it.
  const open = [...listOf(plan.config.allowAddresses), ...LOOPBACK];
  const calls = ['--targets', 'handler,http,exec', ...open.flatMap((range) => ['--allow-address', range])];
  const args = ['worker', 'run', '--name', name, '--url', url, '--queues', '*'];
  return [...args, ...slots, ...calls, ...modules, ...publish];
}

interface Launch {
  readonly name: string;
  readonly args: readonly string[];
  /** Environment variables that must not appear in the list of processes. */
  readonly secrets: Readonly<Record<string, string>>;
  readonly stopTimeoutMs: number;
}

function launch(
  plan: UpPlan,
  dataFolder: string,
  { name, args, secrets, stopTimeoutMs }: Launch,
): SupervisedProcess {
  const { cli, config, report } = plan;
  const supervised = new SupervisedProcess({
    name,
    command: [process.execPath, MAIN, ...args],
    environment: {
      ...cli.environment,
      // For nodes alone: workers run the code of others.
      PUNCTUAL_SECRET_KEY: undefined,
      PUNCTUAL_SECRET_KEY_FILE: undefined,
      PUNCTUAL_DATA: dataFolder,
      PUNCTUAL_LOG_LEVEL: config.logLevel,
      PUNCTUAL_ALLOW_COMMANDS: String(plan.allowCommands),
      ...secrets,
    },
    folder: cli.folder,
    logFile: new LogFile(join(dataFolder, 'logs', `${name}.log`)),
    stopTimeoutMs,
    report,
  });
  cli.interruptedAgain.addEventListener('abort', () => supervised.kill());
  return supervised;
}

/** Waits for a step of the start; rejects when the user interrupts it. */
async function unlessInterrupted<T>(step: Promise<T>, interrupted: AbortSignal): Promise<T> {
  interrupted.throwIfAborted();
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => reject(interrupted.reason);
    interrupted.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([step, aborted]);
  } finally {
    interrupted.removeEventListener('abort', onAbort);
    // After an interruption the step may still fail while everything stops; that error does not matter.
    step.catch(() => undefined);
  }
}
