import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Death, ReportAnswer, Settings } from '../history.js';
import { installClock } from './database-clock.js';
import { NodeSlot, type Surroundings } from './node-slot.js';
import { Postgres } from './postgres.js';
import { ProgramStore } from './program-store.js';
import { repository } from './repository.js';
import { SinkSlot } from './sink-slot.js';
import { TcpProxy } from './tcp-proxy.js';
import { WorkerSlot } from './worker-slot.js';

export interface RigOptions {
  readonly settings: Settings;
  /** Called with every answer to a report of a worker. */
  readonly onAnswer: (answer: ReportAnswer) => void;
  /** Environment of all nodes and workers, such as a fence that is switched off. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether nothing passes through the proxies; then no link can be broken. */
  readonly direct?: boolean;
}

/** A cluster of real processes on one machine, with a proxy on every way between them. */
export class Rig {
  readonly nodes: NodeSlot[] = [];
  readonly workers: WorkerSlot[] = [];
  /** The receiver of calls, if the run makes any. */
  sink: SinkSlot | null = null;
  /** The program that jobs run, if the run has any. */
  programs: ProgramStore | null = null;
  /** The way of the sink to whichever node is next. */
  #door: TcpProxy | null = null;
  /** A worker of another tenant, which no fault touches, once one was asked for. */
  #stranger: Promise<WorkerSlot> | null = null;
  #surroundings!: Surroundings;
  #onAnswer!: (answer: ReportAnswer) => void;
  /** Who ended without being told to. */
  readonly deaths: Death[] = [];
  apiKey = '';

  private constructor(
    readonly settings: Settings,
    /** Logs, effects and spools of the run. */
    readonly folder: string,
    readonly postgres: Postgres,
  ) {}

  static async open({ settings, onAnswer, environment = {}, direct = false }: RigOptions): Promise<Rig> {
    const folder = await mkdtemp(join(tmpdir(), 'punctual-fault-'));
    // Postgres refuses to run as root, and its account must get through to its files.
    await chmod(folder, 0o711);
    const postgres = await Postgres.start(join(folder, 'postgres'));
    const rig = new Rig(settings, folder, postgres);
    postgres.onDeath = (death) => rig.deaths.push(death);
    try {
      await rig.#open(onAnswer, environment, direct);
      return rig;
    } catch (error) {
      await rig.close();
      throw error;
    }
  }

  /** Puts everything back to how it should be, so that only the scheduler's own recovery is left. */
  heal(): void {
    for (const slot of [...this.nodes, ...this.workers]) slot.heal();
  }

  /** The programs of workers that run now: each is started by its path in a folder of the run. */
  runningPrograms(): string[] {
    return readdirSync('/proc').flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
        return command[0]!.startsWith(this.folder) && command[0]!.includes('/cache/')
          ? [`${pid} ${command.join(' ')}`]
          : [];
      } catch {
        return [];
      }
    });
  }

  /** The file that holds by how many milliseconds the wall clock of a slot is wrong. */
  clockFile(slot: string): string {
    return join(this.folder, 'clocks', slot);
  }

  /** The worker of another tenant; started when it is first asked for. */
  stranger(): Promise<WorkerSlot> {
    this.#stranger ??= (async () => {
      const slot = new WorkerSlot('s1', this.settings.slots, this.#surroundings, 'stranger');
      await slot.open(this.nodes, this.#onAnswer);
      return slot;
    })();
    return this.#stranger;
  }

  /** Ends all processes; the folder stays for whoever wants to look. */
  async close(): Promise<void> {
    const stranger = await this.#stranger?.catch(() => null);
    await Promise.all([...this.workers, ...(stranger ? [stranger] : [])].map((worker) => worker.close()));
    await Promise.all(this.nodes.map((node) => node.close()));
    await this.sink?.close();
    await this.#door?.close();
    await this.postgres.remove();
  }

  /** Removes what the run has left on disk. */
  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
  }

  async #open(
    onAnswer: (answer: ReportAnswer) => void,
    environment: Readonly<Record<string, string>>,
    direct: boolean,
  ): Promise<void> {
    const { settings } = this;
    mkdirSync(join(this.folder, 'clocks'));
    this.apiKey = await createKey(this.postgres.url);
    await installClock(this.postgres);
    this.#onAnswer = onAnswer;
    if (settings.callsPerSecond > 0) await this.#openSink();
    if (settings.programsPerSecond > 0) this.programs = new ProgramStore(this.folder);
    this.#surroundings = {
      folder: this.folder,
      apiKey: () => this.apiKey,
      onDeath: (death) => this.deaths.push(death),
      environment: {
        ...configuration(settings),
        ...(this.programs && { PUNCTUAL_ARTIFACT_STORE: this.programs.path }),
        ...environment,
      },
      clockOf: (slot) => this.#clockOf(slot),
      runsPrograms: this.programs !== null,
      reportTo: this.#door ? `http://127.0.0.1:${this.#door.port}` : null,
      direct,
    };
    for (let index = 1; index <= settings.nodes; index += 1) {
      this.nodes.push(new NodeSlot(`n${index}`, this.postgres, this.#surroundings));
    }
    for (let index = 1; index <= settings.workers; index += 1) {
      this.workers.push(new WorkerSlot(`w${index}`, settings.slots, this.#surroundings));
    }
    await Promise.all(this.nodes.map((node) => node.open()));
    await this.programs?.upload(this.nodes[0]!.url, this.apiKey);
    await Promise.all(this.workers.map((worker) => worker.open(this.nodes, onAnswer)));
  }

  async #openSink(): Promise<void> {
    let turn = 0;
    this.#door = await TcpProxy.open(() => {
      turn += 1;
      return this.nodes[turn % this.nodes.length]!.port;
    });
    const { folder } = this;
    this.sink = await SinkSlot.open({ folder, onDeath: (death) => this.deaths.push(death) });
  }

  #clockOf(slot: string): Record<string, string> {
    const file = this.clockFile(slot);
    try {
      readFileSync(file);
    } catch {
      writeFileSync(file, '0');
    }
    const preload = join(repository, 'test', 'fault', 'rig', 'wrong-clock.mjs');
    return { FAULT_CLOCK: file, NODE_OPTIONS: `--import ${preload}` };
  }
}

/** The configuration of all nodes. */
function configuration(settings: Settings): Record<string, string> {
  return {
    PUNCTUAL_LEASE_TTL: `${settings.leaseTtlMs}ms`,
    PUNCTUAL_HEARTBEAT_INTERVAL: `${settings.heartbeatMs}ms`,
    PUNCTUAL_WORKER_TIMEOUT: `${settings.workerTimeoutMs}ms`,
    PUNCTUAL_LOG_LEVEL: 'info',
    // A long run uses more sets than a tenant may by default; that quota is tested elsewhere.
    PUNCTUAL_MAX_LABEL_SETS: '1000000',
    // A sink that was down must be called again before the run is over.
    ...{ PUNCTUAL_CIRCUIT_PAUSE: '500ms', PUNCTUAL_CIRCUIT_MAX_PAUSE: '2s' },
    PUNCTUAL_SECRET_KEY: randomBytes(32).toString('hex'),
    PUNCTUAL_TEST: '1',
  };
}

/** Migrates the database and makes a key, as an operator would. */
async function createKey(databaseUrl: string): Promise<string> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(repository, 'bin', 'punctual'), 'key', 'create', '--operator', '--json'],
    { env: { PATH: process.env.PATH, PUNCTUAL_DATABASE_URL: databaseUrl } },
  );
  return (JSON.parse(stdout) as { key: string }).key;
}
