import pg from 'pg';
import { loadSdk, loadServer } from '../product.js';
import type { Surroundings, System } from './system.js';

/** Handlers at once. Claims carry as many jobs as there are free slots, so this is also the largest batch. */
export const SLOTS = { throughput: 2_000, latency: 10 } as const;

/** A node, a worker and the submitter in one process, as a program that embeds Punctual has them. */
export async function openPunctual(surroundings: Surroundings): Promise<System> {
  const { url, folder, purpose, onStart } = surroundings;
  const { startNode } = await loadServer();
  const { task } = await loadSdk();
  const node = await startNode({ databaseUrl: url, data: folder });
  const count = task('count', (input: { n: number }) => onStart(input.n));
  const slots = SLOTS[purpose];
  const worker = node.punctual.worker([count], { slots });
  await worker.start();
  return {
    settings: { 'worker slots': slots, history: 'kept' },
    submitMany: async (first, size) => {
      await node.punctual.submitMany(
        count,
        Array.from({ length: size }, (_, i) => ({ n: first + i })),
      );
    },
    submitOne: async (n) => {
      await node.punctual.submit(count, { n });
    },
    finish: () => worker.drain(),
    check: (submitted) => checkHistory(url, submitted),
    close: () => node.stop(),
  };
}

/** Every job must be in history as succeeded, and nothing else may be left. */
export async function checkHistory(url: string, submitted: number): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(
      `SELECT (SELECT count(*) FROM punctual.job_history WHERE state = 'succeeded')::int AS succeeded,
              (SELECT count(*) FROM punctual.jobs)::int AS live,
              (SELECT count(*) FROM punctual.claims)::int AS claimed`,
    );
    const { succeeded, live, claimed } = rows[0];
    if (succeeded === submitted && live === 0 && claimed === 0) return [];
    return [
      `history has ${succeeded} of ${submitted} jobs as succeeded; ${live} are live, ${claimed} claimed`,
    ];
  } finally {
    await client.end();
  }
}
