import pg from 'pg';
import { loadPeer } from '../peers.js';
import type { Surroundings, System } from './system.js';

interface Runner {
  addJob(identifier: string, payload: unknown): Promise<unknown>;
  stop(): Promise<void>;
}

interface GraphileWorker {
  run(options: {
    readonly preset: { readonly worker: Readonly<Record<string, unknown>> };
    readonly taskList: Readonly<Record<string, (payload: { n: number }) => void>>;
    readonly noHandleSignals: boolean;
    readonly logger: unknown;
  }): Promise<Runner>;
  readonly Logger: new (factory: () => () => void) => unknown;
}

/**
 * The settings of the performance page of its documentation (worker.graphile.org/docs/performance): a local queue
 * of 500, completions gathered without delay, 24 jobs at once and one connection more.
 */
const BATCHED = {
  concurrentJobs: 24,
  maxPoolSize: 25,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
} as const;

/** For single jobs a local queue and gathering are of no use: each job is fetched and completed by itself. */
const SINGLE = { concurrentJobs: 10, maxPoolSize: 11 } as const;

/** The bulk call of the same page; its rows are not sent back, which is kind to it. */
const ADD_JOBS = `SELECT count(*) FROM graphile_worker.add_jobs(
  ARRAY(SELECT json_populate_recordset(null::graphile_worker.job_spec, $1::json)), false)`;

export async function openGraphileWorker({ url, purpose, onStart }: Surroundings): Promise<System> {
  const { run, Logger } = loadPeer<GraphileWorker>('graphile-worker');
  const settings = purpose === 'throughput' ? BATCHED : SINGLE;
  const runner = await run({
    preset: { worker: { connectionString: url, ...settings } },
    taskList: { count: ({ n }) => onStart(n) },
    noHandleSignals: true,
    logger: new Logger(() => () => undefined),
  });
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  return {
    settings: {
      ...('localQueue' in settings && {
        'localQueue.size': settings.localQueue.size,
        completeJobBatchDelay: settings.completeJobBatchDelay,
        failJobBatchDelay: settings.failJobBatchDelay,
      }),
      concurrentJobs: settings.concurrentJobs,
      'finished jobs': 'deleted',
    },
    submitMany: async (first, count) => {
      const specs = Array.from({ length: count }, (_, i) => ({
        identifier: 'count',
        payload: { n: first + i },
      }));
      await pool.query({ name: 'add-jobs', text: ADD_JOBS, values: [JSON.stringify(specs)] });
    },
    submitOne: async (n) => {
      await runner.addJob('count', { n });
    },
    finish: () => runner.stop(),
    check: async () => {
      const { rows } = await pool.query('SELECT count(*)::int AS left FROM graphile_worker.jobs');
      return rows[0].left === 0 ? [] : [`${rows[0].left} jobs are left in its table`];
    },
    close: () => pool.end(),
  };
}
