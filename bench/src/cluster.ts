import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { operatorKey } from './access.js';
import { now } from './moments.js';
import { PROGRAM } from './product.js';
import { freePort } from './redis.js';

const alive = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of alive) child.kill('SIGKILL');
});

/** A node in a process of its own, started as an operator starts it. */
export class NodeProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;

  private constructor(
    readonly id: string,
    readonly url: string,
    databaseUrl: string,
    readonly port: number,
  ) {
    this.#child = spawn(process.execPath, [PROGRAM, 'server', '--id', id], {
      env: {
        ...{ PATH: process.env.PATH, HOME: process.env.HOME, PUNCTUAL_SUPERVISED: '1' },
        ...{ PUNCTUAL_DATABASE_URL: databaseUrl, PUNCTUAL_PORT: String(port), PUNCTUAL_LOG_LEVEL: 'error' },
      },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      detached: true,
    });
    alive.add(this.#child);
    this.#exited = once(this.#child, 'exit').then(() => alive.delete(this.#child));
  }

  static async start(id: string, databaseUrl: string, port: number): Promise<NodeProcess> {
    const node = new NodeProcess(id, `http://127.0.0.1:${port}`, databaseUrl, port);
    const ended = node.#exited.then(() => Promise.reject(new Error(`The node ${id} ended at once.`)));
    await Promise.race([once(node.#child, 'message'), ended]);
    ended.catch(() => undefined);
    return node;
  }

  /** Sends a signal; gives the moment before it was sent. */
  signal(signal: NodeJS.Signals): number {
    const moment = now();
    this.#child.kill(signal);
    return moment;
  }

  async exited(): Promise<void> {
    await this.#exited;
  }

  async stop(): Promise<void> {
    this.signal('SIGTERM');
    await this.#exited;
  }

  /** CPU time used so far in milliseconds and memory in use in bytes, as Linux tells; null elsewhere. */
  usage(): { readonly cpuMs: number; readonly rssBytes: number } | null {
    return usageOf(this.#child.pid!);
  }
}

/** Ticks of the processor's time per second in `/proc`, the same on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

export function usageOf(pid: number): { readonly cpuMs: number; readonly rssBytes: number } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program stands in brackets and may hold blanks; fields are counted from behind it.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const cpuMs = ((Number(fields[11]) + Number(fields[12])) * 1_000) / TICKS_PER_SECOND;
    const rssKb = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return { cpuMs, rssBytes: Number(rssKb) * 1_024 };
  } catch {
    return null;
  }
}

/** Several nodes on one database. */
export class Cluster {
  #started = 0;

  private constructor(
    readonly databaseUrl: string,
    readonly apiKey: string,
    readonly nodes: NodeProcess[],
  ) {}

  /** Starts nodes, does something with them, and stops them. */
  static async with<T>(
    databaseUrl: string,
    size: number,
    work: (cluster: Cluster) => Promise<T>,
  ): Promise<T> {
    const cluster = new Cluster(databaseUrl, await operatorKey(databaseUrl), []);
    try {
      while (cluster.nodes.length < size) cluster.nodes.push(await cluster.#start(await freePort()));
      return await work(cluster);
    } finally {
      await Promise.all(cluster.nodes.map((node) => node.stop()));
    }
  }

  get urls(): readonly string[] {
    return this.nodes.map(({ url }) => url);
  }

  /** Puts a new node in the place of one that has ended, under the same address. */
  async replace(node: NodeProcess): Promise<void> {
    await node.exited();
    this.nodes[this.nodes.indexOf(node)] = await this.#start(node.port);
  }

  /** The node that leads, and the number of its term. */
  async leader(): Promise<{ readonly node: NodeProcess; readonly epoch: number }> {
    const answer = await fetch(`${this.nodes[0]!.url}/v1/cluster`, {
      headers: { authorization: `Bearer ${this.apiKey}` },
      signal: AbortSignal.timeout(10_000),
    });
    const { shards } = (await answer.json()) as { shards: { leader: string; epoch: number }[] };
    const node = this.nodes.find(({ id }) => id === shards[0]!.leader);
    if (!node) throw new Error(`Nobody leads: ${JSON.stringify(shards)}.`);
    return { node, epoch: shards[0]!.epoch };
  }

  #start(port: number): Promise<NodeProcess> {
    this.#started += 1;
    return NodeProcess.start(`node-${this.#started}`, this.databaseUrl, port);
  }
}
