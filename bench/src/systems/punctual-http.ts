import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { operatorKey } from '../access.js';
import { now } from '../moments.js';
import { loadSdk, loadServer, PROGRAM } from '../product.js';
import { allTaken, checkHistory } from './punctual.js';
import { Receiver } from './receiver.js';
import type { CallBody } from './receiver-process.js';
import type { System } from './system.js';

/** Calls to one origin at a time: the most that a worker makes. */
export const CONNECTIONS = 256;
/** Calls at a time, whatever their origins. */
const SLOTS = 2_000;
/** What docs/http-targets.md recommends for workers with so many slots, in MiB. */
const SEMI_SPACE = 32;

interface HttpOptions {
  readonly url: string;
  readonly folder: string;
  readonly profileFolder: string | null;
}

/** Calls are made by Punctual. */
export interface CallingSystem extends System {
  /** Submits one call to each of these URLs; they do not count as jobs of the slice. */
  submitOthers(urls: readonly string[]): Promise<void>;
}

/** A node and the submitter in one process, the worker in another, the receiver in a third; calls are signed. */
export async function openPunctualHttp(
  options: HttpOptions,
): Promise<{ readonly system: CallingSystem; readonly receiver: Receiver }> {
  const { url, folder, profileFolder } = options;
  const { startNode } = await loadServer();
  const { http } = await loadSdk();
  const receiver = await Receiver.start();
  const secretKey = randomBytes(32).toString('hex');
  const node = await startNode({ databaseUrl: url, data: folder, secretKey, originConcurrency: 0 });
  const worker = await startWorker(node.url, await operatorKey(url), profileFolder);
  const target = http({ url: receiver.fastUrl });
  const bodies = (first: number, count: number): CallBody[] => {
    const at = now();
    return Array.from({ length: count }, (_, i) => ({ n: first + i, at }));
  };
  let others = 0;
  const system: CallingSystem = {
    settings: {
      ...{ 'worker slots': SLOTS, 'calls per origin': CONNECTIONS, signed: true, history: 'kept' },
      'worker semi-space': `${SEMI_SPACE} MiB`,
    },
    submitMany: async (first, count) => {
      await node.punctual.submitMany(target, bodies(first, count));
    },
    submitOne: async (n) => {
      await node.punctual.submit(target, bodies(n, 1)[0]!);
    },
    submitOthers: async (urls) => {
      others += urls.length;
      await Promise.all(urls.map((other) => node.punctual.submit(http({ url: other }), null)));
    },
    // Slow calls may wait for a free slot; a worker that stops takes no more.
    finish: async () => {
      await allTaken(url);
      await worker.stop();
    },
    check: (submitted) => checkHistory(url, submitted + others),
    close: async () => {
      await worker.stop();
      await node.stop();
      await receiver.close();
    },
  };
  return { system, receiver };
}

/** A worker, started as an operator starts it. */
async function startWorker(url: string, apiKey: string, profileFolder: string | null) {
  const profiling = profileFolder === null ? [] : ['--cpu-prof', `--cpu-prof-dir=${profileFolder}`];
  const args = ['worker', 'run', '--targets', 'http', '--slots', String(SLOTS)];
  const node = [`--max-semi-space-size=${SEMI_SPACE}`, ...profiling];
  const child = spawn(process.execPath, [...node, PROGRAM, ...args, '--allow-address', '127.0.0.0/8'], {
    env: { ...process.env, PUNCTUAL_SUPERVISED: '1', PUNCTUAL_URL: url, PUNCTUAL_API_KEY: apiKey },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  let closing = false;
  const exited = once(child, 'exit');
  child.once('exit', () => {
    if (!closing) process.exit(1);
  });
  process.once('exit', () => child.kill('SIGKILL'));
  await once(child, 'message');
  return {
    stop: async () => {
      closing = true;
      child.kill('SIGTERM');
      await exited;
    },
  };
}
