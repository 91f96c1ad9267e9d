import { loadPeer } from '../peers.js';
import type { Surroundings, System } from './system.js';

interface Queue {
  add(name: string, data: unknown, options?: unknown): Promise<unknown>;
  addBulk(jobs: readonly { readonly name: string; readonly data: unknown }[]): Promise<unknown>;
  getJobCounts(...states: string[]): Promise<Readonly<Record<string, number>>>;
  close(): Promise<void>;
}

interface Worker {
  on(event: 'error', listener: (error: Error) => void): void;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
}

interface BullMq {
  readonly Queue: new (name: string, options: unknown) => Queue;
  readonly Worker: new (
    name: string,
    processor: (job: { readonly data: { readonly n: number } }) => Promise<void>,
    options: unknown,
  ) => Worker;
}

const QUEUE = 'count';
/** Its documentation asks for a concurrency in the hundreds where jobs do no computing, and for several workers. */
const WORKERS = { throughput: { workers: 2, concurrency: 200 }, latency: { workers: 1, concurrency: 10 } };

export async function openBullMq({ url, purpose, onStart }: Surroundings): Promise<System> {
  const { Queue, Worker } = loadPeer<BullMq>('bullmq');
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const removal = { removeOnComplete: true, removeOnFail: true };
  const queue = new Queue(QUEUE, { connection, defaultJobOptions: removal });
  const { workers: size, concurrency } = WORKERS[purpose];
  const errors: string[] = [];
  const workers = Array.from(
    { length: size },
    () => new Worker(QUEUE, async (job) => onStart(job.data.n), { connection, concurrency, ...removal }),
  );
  for (const worker of workers) worker.on('error', (error) => errors.push(error.message));
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  return {
    settings: { workers: size, concurrency, 'finished jobs': 'deleted', Redis: 'AOF every second' },
    submitMany: async (first, count) => {
      await queue.addBulk(Array.from({ length: count }, (_, i) => ({ name: QUEUE, data: { n: first + i } })));
    },
    submitOne: async (n) => {
      await queue.add(QUEUE, { n });
    },
    finish: async () => {
      await Promise.all(workers.map((worker) => worker.close()));
    },
    check: async () => {
      const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'failed', 'prioritized');
      const left = Object.values(counts).reduce((sum, count) => sum + count, 0);
      return left === 0 ? errors : [`jobs are left: ${JSON.stringify(counts)}`, ...errors];
    },
    close: () => queue.close(),
  };
}
