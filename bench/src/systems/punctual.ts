import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import type { AnyStep } from '../../../src/index.js';
import { GENEROUS_QUOTAS, makeTenantWithQuotas, operatorKey } from '../access.js';
import type { Graph } from '../graphs.js';
import { loadSdk, loadServer } from '../product.js';
import type { GraphSystem, Surroundings } from './system.js';

/** Handlers at once. Claims carry as many jobs as there are free slots, so this is also the largest batch. */
export const SLOTS = { throughput: 2_000, latency: 10 } as const;

/** The tenant whose jobs are counted. */
export const METERED = 'metered';

export const quotaSettings = Object.fromEntries(
  Object.entries(GENEROUS_QUOTAS).map(([name, limit]) => [`quota ${name}`, limit]),
);
const CHECKS = 50;
const TAKEN_CHECKS = 600;
const CHECK_AGAIN_MS = 100;

/** Punctual takes jobs that are due later, too. */
export interface PunctualSystem extends GraphSystem {
  /** Submits jobs numbered from `first` on, each due at its moment. */
  submitDue(first: number, dueAt: readonly number[]): Promise<void>;
}

/** A node, a worker and the submitter in one process, as a program that embeds Punctual has them. */
export async function openPunctual(surroundings: Surroundings): Promise<PunctualSystem> {
  const { url, folder, purpose, onStart, quotas } = surroundings;
  const { startNode } = await loadServer();
  const { task, workflow } = await loadSdk();
  if (quotas) await makeTenantWithQuotas(url, folder, METERED);
  const node = await startNode({ databaseUrl: url, data: folder, ...(quotas && { tenant: METERED }) });
  const count = task('count', (input: { n: number }) => onStart(input.n));
  const slots = SLOTS[purpose];
  const worker = node.punctual.worker([count], { slots });
  await worker.start();
  const before = await historySize(url);
  let key: Promise<string> | undefined;
  return {
    settings: { 'worker slots': slots, history: 'kept', ...(quotas && quotaSettings) },
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
    submitGraph: async (graph, first, way) => {
      if (way === 'http') {
        key ??= operatorKey(url);
        return postWorkflow(node.url, await key, graph, first);
      }
      await node.punctual.start(
        workflow('bench', (w) => {
          const steps: AnyStep[] = [];
          for (const [step, after] of graph.entries()) {
            const place = { name: `s${step}`, after: after.map((parent) => steps[parent]!) };
            steps.push(w.run(count, { n: first + step }, place));
          }
        }),
      );
    },
    finish: () => worker.drain(),
    check: async (submitted) => [
      ...(await checkHistory(url, before + submitted)),
      ...(await checkWorkflows(url)),
    ],
    close: () => node.stop(),
  };
}

async function postWorkflow(url: string, key: string, graph: Graph, first: number): Promise<void> {
  const jobs = graph.map((after, step) => [
    `s${step}`,
    { task: 'count', payload: { n: first + step }, after: after.map((parent) => `s${parent}`) },
  ]);
  const answer = await fetch(new URL('/v1/workflows', url), {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bench', jobs: Object.fromEntries(jobs) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`The workflow was answered with ${answer.status}: ${text}`);
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

/** Waits until a worker has taken every job, and gives up after a while: the check tells what is left. */
export async function allTaken(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (let left = TAKEN_CHECKS; left > 0; left -= 1) {
      const { rows } = await client.query<{ waiting: boolean }>(
        'SELECT (SELECT count(*) FROM punctual.jobs) > (SELECT count(*) FROM punctual.claims) AS waiting',
      );
      if (!rows[0]!.waiting) return;
      await pause(CHECK_AGAIN_MS);
    }
  } finally {
    await client.end();
  }
}

/** Every workflow must have ended well; the last ones are counted out after their last step. */
async function checkWorkflows(url: string): Promise<readonly string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (let left = CHECKS; ; left -= 1) {
      const { rows } = await client.query<{ state: string; count: number }>(
        `SELECT state, count(*)::int AS count FROM punctual.workflows WHERE state <> 'succeeded' GROUP BY state`,
      );
      if (rows.length === 0) return [];
      if (left === 0) return rows.map(({ state, count }) => `${count} workflows are ${state}`);
      await pause(CHECK_AGAIN_MS);
    }
  } finally {
    await client.end();
  }
}
