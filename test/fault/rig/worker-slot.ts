import { chmodSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ReportAnswer } from '../history.js';
import type { Random } from '../random.js';
import { Member } from './member.js';
import type { NodeSlot, Surroundings } from './node-slot.js';
import { repository } from './repository.js';
import { WorkerLink } from './worker-link.js';

/** What every worker offers: each set of these is something that a job may require. */
const LABELS: readonly string[] = Array.from({ length: 14 }, (_, index) => `has-${index}`);

/** A set of labels that a job may require, mostly one that was never required before. */
export function someLabels(random: Random): Record<string, string> {
  const labels = LABELS.filter(() => random.next() < 0.5);
  return Object.fromEntries(labels.map((label) => [label, 'yes']));
}

/** A place for a worker: its links to the nodes stay while processes come and go, and so does its disk. */
export class WorkerSlot {
  member!: Member;
  readonly links: WorkerLink[] = [];
  #nodes: readonly NodeSlot[] = [];
  #incarnation = 0;
  #starting: Promise<void> | null = null;

  constructor(
    readonly name: string,
    private readonly slots: number,
    private readonly surroundings: Surroundings,
    /** Whose jobs it runs. */
    readonly tenant = 'default',
  ) {}

  async open(nodes: readonly NodeSlot[], onAnswer: (answer: ReportAnswer) => void): Promise<void> {
    this.#nodes = nodes;
    for (const node of nodes) this.links.push(await WorkerLink.open(() => node.port, onAnswer));
    await this.start();
  }

  /** While this file is there, the worker dies after the next effect. */
  get killFile(): string {
    return join(this.surroundings.folder, `${this.name}.kill`);
  }

  /** Starts a new process unless one runs, and waits until it is registered. */
  start(): Promise<void> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  async #start(): Promise<void> {
    if (this.#incarnation > 0 && this.member.isAlive) return;
    this.#incarnation += 1;
    const name = `${this.name}.${this.#incarnation}`;
    const data = join(this.surroundings.folder, this.name);
    mkdirSync(data, { recursive: true });
    if (this.surroundings.runsPrograms) {
      const effects = join(this.surroundings.folder, `p-${name}.effects`);
      writeFileSync(effects, '');
      // Programs have users of their own.
      chmodSync(effects, 0o666);
    }
    const ways = this.surroundings.direct ? this.#nodes : this.links;
    this.member = new Member({
      name,
      args: [
        ...['worker', 'run', '--name', this.name, '--slots', String(this.slots), '--queues', '*'],
        ...['--tenant', this.tenant, ...LABELS.flatMap((label) => ['--label', `${label}=yes`])],
        ...this.#callArguments(name),
        ...['--module', join(repository, 'test', 'fault', 'rig', 'effects.mjs')],
      ],
      environment: {
        ...this.surroundings.environment,
        ...this.surroundings.clockOf(this.name),
        PUNCTUAL_URL: ways.map(({ url }) => url).join(','),
        PUNCTUAL_API_KEY: this.surroundings.apiKey(),
        PUNCTUAL_DATA: data,
        FAULT_WORKER: name,
        FAULT_TENANT: this.tenant,
        FAULT_KILL: this.killFile,
        FAULT_EFFECTS: join(this.surroundings.folder, `${name}.effects`),
      },
      logFile: `${this.surroundings.folder}/${this.name}.log`,
      onDeath: (death) => {
        this.surroundings.onDeath(death);
        void this.start();
      },
    });
    await this.member.ready;
  }

  /** Makes it call the sink, or run programs, if the run has any; its public address tells them whose they are. */
  #callArguments(name: string): string[] {
    const { reportTo, runsPrograms } = this.surroundings;
    if (runsPrograms) {
      // The address is never asked: by it, a program knows whose it is.
      const publicUrl = `http://127.0.0.1:1/?worker=${name}`;
      return ['--targets', 'handler,exec', '--isolation', 'none', '--public-url', publicUrl];
    }
    if (reportTo === null) return [];
    const publicUrl = `${reportTo}/?worker=${name}`;
    return ['--targets', 'handler,http', '--allow-address', '127.0.0.0/8', '--public-url', publicUrl];
  }

  /** Takes away what it has downloaded. */
  forgetPrograms(): void {
    const cache = join(this.surroundings.folder, this.name, 'exec', this.name, 'cache');
    for (const file of readdirSync(cache)) rmSync(join(cache, file), { force: true });
  }

  heal(): void {
    for (const link of this.links) link.heal();
  }

  async close(): Promise<void> {
    this.heal();
    await this.member.stop();
    await Promise.all(this.links.map((link) => link.close()));
  }
}
