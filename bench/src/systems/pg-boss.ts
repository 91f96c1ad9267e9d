import { loadPeer } from '../peers.js';
import type { Surroundings, System } from './system.js';

interface FetchedJob {
  readonly id: string;
  readonly data: { readonly n: number };
}

interface Boss {
  on(event: 'error', listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  stop(options: { readonly graceful: boolean }): Promise<void>;
  createQueue(name: string): Promise<void>;
  insert(jobs: readonly { readonly name: string; readonly data: unknown }[]): Promise<void>;
  send(name: string, data: unknown): Promise<unknown>;
  fetch(name: string, options: { batchSize: number; priority: boolean }): Promise<readonly FetchedJob[]>;
  complete(name: string, ids: readonly string[]): Promise<void>;
  getQueueSize(name: string, options: { readonly before: string }): Promise<number>;
}

const QUEUE = 'count';
const BATCH = 1_000;

/**
 * `work()` polls at most twice a second, so jobs are fetched and completed in batches by hand, as its documentation
 * offers, without order by priority; bulk submission is its `insert`.
 */
export async function openPgBoss({ url, onStart }: Surroundings): Promise<System> {
  const PgBoss = loadPeer<new (options: Readonly<Record<string, unknown>>) => Boss>('pg-boss');
  const boss = new PgBoss({ connectionString: url, max: 10, schedule: false });
  const errors: string[] = [];
  boss.on('error', (error) => errors.push(error.message));
  await boss.start();
  await boss.createQueue(QUEUE);
  let finishing = false;
  const working = work();

  async function work(): Promise<void> {
    for (;;) {
      const jobs = await boss.fetch(QUEUE, { batchSize: BATCH, priority: false });
      for (const job of jobs) onStart(job.data.n);
      if (jobs.length > 0) {
        const ids = jobs.map((job) => job.id);
        await boss.complete(QUEUE, ids);
      } else {
        if (finishing) return;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }
  }

  return {
    settings: { 'fetch and complete': `batches of ${BATCH}`, priority: false, 'finished jobs': 'kept' },
    submitMany: (first, count) =>
      boss.insert(Array.from({ length: count }, (_, i) => ({ name: QUEUE, data: { n: first + i } }))),
    submitOne: async (n) => {
      await boss.send(QUEUE, { n });
    },
    finish: () => {
      finishing = true;
      return working;
    },
    check: async () => {
      const left = await boss.getQueueSize(QUEUE, { before: 'completed' });
      return left === 0 ? errors : [`${left} jobs are not completed`, ...errors];
    },
    close: () => boss.stop({ graceful: false }),
  };
}
