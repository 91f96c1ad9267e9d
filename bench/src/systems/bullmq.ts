import type { Graph } from '../graphs.js';
import { loadPeer } from '../peers.js';
import type { GraphSystem, Surroundings } from './system.js';

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

/** A job of a flow: it runs when its children have ended. */
interface Flow {
  readonly name: string;
  readonly queueName: string;
  readonly data: unknown;
  readonly opts: unknown;
  readonly children: Flow[];
}

interface FlowProducer {
  add(flow: Flow): Promise<unknown>;
  close(): Promise<void>;
}

interface BullMq {
  readonly FlowProducer: new (options: unknown) => FlowProducer;
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

export async function openBullMq({ url, purpose, onStart }: Surroundings): Promise<GraphSystem> {
  const { FlowProducer, Queue, Worker } = loadPeer<BullMq>('bullmq');
  const { hostname: host, port } = new URL(url);
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const removal = { removeOnComplete: true, removeOnFail: true };
  const queue = new Queue(QUEUE, { connection, defaultJobOptions: removal });
  const flows = new FlowProducer({ connection });
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
    submitGraph: async (graph, first) => {
      await flows.add(toFlow(graph, first, removal));
    },
    finish: async () => {
      await Promise.all(workers.map((worker) => worker.close()));
    },
    check: async () => {
      const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'failed', 'prioritized');
      const left = Object.values(counts).reduce((sum, count) => sum + count, 0);
      return left === 0 ? errors : [`jobs are left: ${JSON.stringify(counts)}`, ...errors];
    },
    close: async () => {
      await flows.close();
      await queue.close();
    },
  };
}

/** The graph as a tree with its last step as the root, which is possible if no step is waited for by two. */
function toFlow(graph: Graph, first: number, opts: unknown): Flow {
  const flows = graph.map(
    (_, step): Flow => ({
      ...{ name: QUEUE, queueName: QUEUE, data: { n: first + step }, opts, children: [] },
    }),
  );
  for (const [step, after] of graph.entries())
    for (const parent of after) flows[step]!.children.push(flows[parent]!);
  return flows.at(-1)!;
}
