import pg from 'pg';
import { loadSdk, loadServer } from '../product.js';
import type { Surroundings, System } from './system.js';

/** Handlers at once. Claims carry as many jobs as there are free slots, so this is also the largest batch. */
export const SLOTS = { throughput: 2_000, latency: 10 } as const;

/** Punctual takes jobs that are due later, too. */
export interface PunctualSystem extends System {
  /** Submits jobs numbered from `first` on, each due at its moment. */
  submitDue(first: number, dueAt: readonly number[]): Promise<void>;
}

/** A node, a worker and the submitter in one process, as a program that embeds Punctual has them. */
export async function openPunctual(surroundings: Surroundings): Promise<PunctualSystem> {
  const { url, folder, purpose, onStart } = surroundings;
  const { startNode } = await loadServer();
  const { task } = await loadSdk();
  const node = await startNode({ databaseUrl: url, data: folder });
  const count = task('count', (input: { n: number }) => onStart(input.n));
  const slots = SLOTS[purpose];
  const worker = node.punctual.worker([count], { slots });
  await worker.start();
  const before = await historySize(url);
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
    submitDue: async (first, dueAt) => {
      await node.punctual.submitMany(
        count,
        dueAt.map((_, i) => ({ n: first + i })),
        ({ n }) => ({ runAt: new Date(dueAt[n - first]!) }),
      );
    },
    finish: () => worker.drain(),
    check: (submitted) => checkHistory(url, before + submitted),
    close: () => node.stop(),
  };
}

interface Places {
  readonly succeeded: number;
  readonly live: number;
  readonly claimed: number;
}

async function countPlaces(url: string): Promise<Places> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<Places>(
      `SELECT (SELECT count(*) FROM punctual.job_history WHERE state = 'succeeded')::int AS succeeded,
              (SELECT count(*) FROM punctual.jobs)::int AS live,
              (SELECT count(*) FROM punctual.claims)::int AS claimed`,
    );
    return rows[0]!;
  } finally {
    await client.end();
  }
}

/** How many jobs history holds; another slice may have filled it before. */
export async function historySize(url: string): Promise<number> {
  return (await countPlaces(url)).succeeded;
}

/** Every job must be in history as succeeded, and nothing may be left to run. */
export async function checkHistory(url: string, expected: number): Promise<readonly string[]> {
  const { succeeded, live, claimed } = await countPlaces(url);
  if (succeeded === expected && live === 0 && claimed === 0) return [];
  return [`history has ${succeeded} of ${expected} jobs as succeeded; ${live} are live, ${claimed} claimed`];
}
