import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { makeTenantWithQuotas, operatorKey } from '../access.js';
import { type Account, type Starts, Waiters } from '../ledger.js';
import { loadServer } from '../product.js';
import { checkHistory, METERED, quotaSettings, SLOTS } from './punctual.js';
import type { System } from './system.js';
import type { FromWorker, ToWorker } from './wire-worker-process.js';

interface WireOptions {
  readonly url: string;
  readonly folder: string;
  readonly profileFolder: string | null;
  /** Whether the jobs are of a tenant with quotas, whose own key the worker has. */
  readonly quotas: boolean;
}

/** A node and the submitter in one process, the worker in another, HTTP between them. */
export async function openPunctualWire(
  options: WireOptions,
): Promise<{ readonly system: System; readonly starts: Starts }> {
  const { url, folder, profileFolder, quotas } = options;
  const { startNode } = await loadServer();
  const metered = quotas ? await makeTenantWithQuotas(url, folder, METERED) : null;
  const node = await startNode({ databaseUrl: url, data: folder, ...(metered && { tenant: METERED }) });
  const apiKey = metered?.apiKey ?? (await operatorKey(url));
  const profiling = profileFolder === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`];
  const child = fork(join(import.meta.dirname, 'wire-worker-process.js'), [], {
    execArgv: profiling,
    env: { ...process.env, PUNCTUAL_URL: node.url, PUNCTUAL_API_KEY: apiKey },
  });
  const starts = new RemoteStarts(child);
  let closing = false;
  child.once('exit', () => {
    // Without its worker a slice cannot go on; whoever started it sees that it ended without a result.
    if (!closing) process.exit(1);
  });
  child.send({ type: 'work', slots: SLOTS.throughput } satisfies ToWorker);
  await starts.ready;
  const system: System = {
    settings: {
      ...{ 'worker slots': SLOTS.throughput, history: 'kept', worker: 'another process, HTTP' },
      ...(metered && { ...quotaSettings, key: "a tenant's" }),
    },
    submitMany: async (first, size) => {
      await node.punctual.submitMany(
        'count',
        Array.from({ length: size }, (_, i) => ({ n: first + i })),
      );
    },
    submitOne: async (n) => {
      await node.punctual.submit('count', { n });
    },
    finish: () => starts.finish(),
    check: (submitted) => checkHistory(url, submitted),
    close: async () => {
      closing = true;
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
      await node.stop();
    },
  };
  return { system, starts };
}

/** The starts in the worker's process, as it tells of them. */
class RemoteStarts implements Starts {
  started = 0;
  readonly ready: Promise<void>;
  readonly #waiters = new Waiters();
  readonly #child: ChildProcess;
  #onReady!: () => void;
  #onFinished!: () => void;
  #onAccount!: (account: Account) => void;

  constructor(child: ChildProcess) {
    this.#child = child;
    this.ready = new Promise((resolve) => {
      this.#onReady = resolve;
    });
    child.on('message', (message: FromWorker) => this.#take(message));
  }

  begin(moment: number): void {
    this.#send({ type: 'begin', moment });
  }

  async reached(count: number): Promise<void> {
    if (this.started < count) await this.#waiters.wait(count);
  }

  account(submitted: number): Promise<Account> {
    return new Promise((resolve) => {
      this.#onAccount = resolve;
      this.#send({ type: 'account', submitted });
    });
  }

  /** Lets the worker end what it runs, deliver the results and leave. */
  finish(): Promise<void> {
    return new Promise((resolve) => {
      this.#onFinished = resolve;
      this.#send({ type: 'drain' });
    });
  }

  #send(message: ToWorker): void {
    this.#child.send(message);
  }

  #take(message: FromWorker): void {
    switch (message.type) {
      case 'ready':
        this.#onReady();
        break;
      case 'started':
        this.started = message.count;
        this.#waiters.reached(this.started);
        break;
      case 'drained':
        this.#onFinished();
        break;
      case 'account':
        this.#onAccount(message.account);
        break;
    }
  }
}
