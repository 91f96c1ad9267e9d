import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { request } from 'undici';
import type { CallReport, Death, FailedCall } from '../history.js';
import { freePort } from './free-port.js';
import { Member } from './member.js';
import { repository } from './repository.js';

/** How many origins calls go to. */
const ORIGINS = 5;

/** How the sink treats all calls for a while; null is as they ask for. */
export type SinkMode = FailedCall | 'hold' | 'slow' | null;

export interface SinkState {
  /** Calls that the present mode has hit. */
  readonly meddled: number;
  /** Reports about calls that were handed on which no node has answered yet. */
  readonly pending: number;
  /** The workers whose calls are held. */
  readonly held: readonly string[];
}

interface SinkSurroundings {
  readonly folder: string;
  readonly onDeath: (death: Death) => void;
}

/** The place of the receiver of calls: its ports stay while processes come and go. */
export class SinkSlot {
  member!: Member;
  #incarnation = 0;
  #starting: Promise<void> | null = null;

  private constructor(
    private readonly surroundings: SinkSurroundings,
    private readonly ports: readonly number[],
    private readonly controlPort: number,
  ) {}

  static async open(surroundings: SinkSurroundings): Promise<SinkSlot> {
    const ports = [];
    for (let index = 0; index <= ORIGINS; index += 1) ports.push(await freePort());
    const [control, ...others] = ports as [number, ...number[]];
    const sink = new SinkSlot(surroundings, others, control);
    await sink.start();
    return sink;
  }

  /** The addresses that calls go to. */
  get origins(): readonly string[] {
    return this.ports.map((port) => `http://127.0.0.1:${port}`);
  }

  /** Starts a new process unless one runs. */
  start(): Promise<void> {
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  /** Treats all calls so from now on, until told otherwise. */
  become(mode: SinkMode): Promise<SinkState> {
    return this.#ask('POST', { mode });
  }

  state(): Promise<SinkState> {
    return this.#ask('GET');
  }

  /** What nodes have answered to the reports about calls that were handed on. */
  reports(): CallReport[] {
    const files = readdirSync(this.surroundings.folder).filter((name) => /^sink\.\d+\.reports$/.test(name));
    return files.flatMap((name) =>
      readFileSync(join(this.surroundings.folder, name), 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as CallReport),
    );
  }

  async close(): Promise<void> {
    await this.member.kill();
  }

  async #start(): Promise<void> {
    if (this.#incarnation > 0 && this.member.isAlive) return;
    this.#incarnation += 1;
    const { folder, onDeath } = this.surroundings;
    const name = `sink.${this.#incarnation}`;
    this.member = new Member({
      name,
      program: join(repository, 'test', 'fault', 'rig', 'http-sink.mjs'),
      args: [],
      environment: {
        FAULT_EFFECTS: join(folder, `${name}.effects`),
        FAULT_REPORTS: join(folder, `${name}.reports`),
        FAULT_PORTS: this.ports.join(','),
        FAULT_CONTROL: String(this.controlPort),
      },
      logFile: join(folder, 'sink.log'),
      onDeath: (death) => {
        onDeath(death);
        void this.start();
      },
    });
    await this.member.ready;
  }

  async #ask(method: 'GET' | 'POST', body?: object): Promise<SinkState> {
    const answer = await request(`http://127.0.0.1:${this.controlPort}/`, {
      method,
      reset: true,
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await answer.body.json()) as SinkState;
  }
}
