import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { makeTenantWithQuotas, operatorKey } from '../access.js';
import type { Starts } from '../ledger.js';
import { loadServer } from '../product.js';
import { checkHistory, METERED, quotaSettings, SLOTS } from './punctual.js';
import { nextMessage, RemoteStarts } from './remote-starts.js';
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
  const ready = nextMessage<FromWorker, 'ready'>(child, 'ready');
  child.send({ type: 'work', slots: SLOTS.throughput } satisfies ToWorker);
  await ready;
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
    // The worker ends what it runs, delivers the results and leaves.
    finish: async () => {
      const drained = nextMessage<FromWorker, 'drained'>(child, 'drained');
      child.send({ type: 'drain' } satisfies ToWorker);
      await drained;
    },
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
