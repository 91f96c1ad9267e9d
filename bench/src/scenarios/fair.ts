import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { Cluster } from '../cluster.js';
import { now, ticking, until } from '../moments.js';
import { loadSdk, productVersion } from '../product.js';
import { atMost, type ScenarioResult, type SystemResult } from '../result.js';
import { environmentOf, withPostgres } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import { spread } from '../statistics.js';
import type { FromFlood, ToFlood } from '../systems/flood-process.js';

const FLOOD = 100_000;
const CALM_PER_SECOND = 10;
const PATIENCE_MS = 30_000;

export const fair: Scenario = {
  name: 'fair',
  title: 'One tenant floods, another submits 10 jobs/s: how long the other waits',
  secondsMean: 'how long the calm tenant is watched alone, and again beside the flood',
  defaultSeconds: 30,
  run: (context: Context): Promise<ScenarioResult> =>
    withPostgres(context, (postgres) =>
      postgres.withDatabase('bench', async (url) => {
        const environment = environmentOf(postgres);
        const { alone, beside, flooded } = await Cluster.with(url, 1, (cluster) => watch(cluster, context));
        const calm = (name: string, role: SystemResult['role'], delays: readonly number[]): SystemResult => ({
          ...{ name, role, version: productVersion, jobs: delays.length, ...spread(delays) },
          settings: { 'jobs of the calm tenant per second': CALM_PER_SECOND },
        });
        const systems = [calm('punctual', 'ours', beside), calm('punctual-alone', 'reference', alone)];
        return {
          ...{ scenario: 'fair', seconds: context.seconds, systems, ratioToBestPeer: null, environment },
          what: [
            `One node in a process of its own. A tenant keeps ${FLOOD.toLocaleString('en')} jobs waiting (each takes 20 ms, its worker has 100 slots; worker and submitter are a process of their own). Another tenant submits ${CALM_PER_SECOND} jobs a second and has a worker of its own, in the bench's process, over HTTP.`,
            `Measured for the other tenant, from the call that submits to the first line of the handler: alone, and beside the flood, of which ${flooded.toLocaleString('en')} jobs ran meanwhile.`,
          ],
          targets: [
            atMost(
              'p99 beside the flood (2 × alone + 20 ms)',
              2 * systems[1]!.p99Ms! + 20,
              systems[0]!.p99Ms!,
            ),
          ],
          problems: [...missing('alone', alone), ...missing('beside the flood', beside)],
        };
      }),
    ),
};

/** A job that has not started in time has a delay without end. */
function missing(when: string, delays: readonly number[]): readonly string[] {
  const count = delays.filter((delay) => !Number.isFinite(delay)).length;
  return count === 0 ? [] : [`${count} jobs of the calm tenant never started, ${when}`];
}

async function watch(cluster: Cluster, context: Context) {
  const calm = await openCalm(cluster);
  const environment = { ...process.env, PUNCTUAL_URL: cluster.urls.join(), PUNCTUAL_API_KEY: cluster.apiKey };
  const flood = fork(join(import.meta.dirname, '..', 'systems', 'flood-process.js'), [], {
    env: environment,
  });
  try {
    context.progress.say('  the calm tenant alone');
    const alone = await calm.measure(context);
    context.progress.say(`  filling the backlog of the other tenant with ${FLOOD.toLocaleString('en')} jobs`);
    const stopTelling = ticking(1_000, () => context.progress.tell('filling'));
    await tell(flood, { type: 'flood', tenant: 'flood', jobs: FLOOD }, 'full');
    stopTelling();
    context.progress.say('  the calm tenant beside the flood');
    const beside = await calm.measure(context);
    const { ran } = await tell(flood, { type: 'stop' }, 'stopped');
    return { alone, beside, flooded: ran };
  } finally {
    const ended = once(flood, 'exit');
    flood.disconnect();
    await ended;
    await calm.close();
  }
}

/** Sends an order and waits for the answer; ends with an error if the process does. */
async function tell<Type extends FromFlood['type']>(
  flood: ChildProcess,
  order: ToFlood,
  type: Type,
): Promise<Extract<FromFlood, { type: Type }>> {
  flood.send(order);
  const ended = once(flood, 'exit').then(() => Promise.reject(new Error('The flood has ended by itself.')));
  ended.catch(() => undefined);
  for (;;) {
    const [message] = (await Promise.race([once(flood, 'message'), ended])) as [FromFlood];
    if (message.type === type) return message as Extract<FromFlood, { type: Type }>;
  }
}

async function openCalm(cluster: Cluster) {
  const { connect, task } = await loadSdk();
  const punctual = connect({ url: cluster.urls, apiKey: cluster.apiKey, tenant: 'calm' });
  const waiting = new Map<number, (moment: number) => void>();
  const drop = task('drop', ({ n }: { n: number }) => waiting.get(n)?.(now()));
  const worker = punctual.worker([drop]);
  await worker.start();
  let number = 0;

  async function submit(): Promise<number> {
    const n = number++;
    const begin = now();
    const started = new Promise<number>((resolve) => waiting.set(n, resolve));
    await punctual.submit(drop, { n });
    const moment = await Promise.race([
      started,
      pause(PATIENCE_MS, Number.POSITIVE_INFINITY, { ref: false }),
    ]);
    waiting.delete(n);
    return moment - begin;
  }

  return {
    measure: async ({ seconds, progress, signal }: Context): Promise<readonly number[]> => {
      const begin = now();
      const delays: Promise<number>[] = [];
      for (let i = 0; i < seconds * CALM_PER_SECOND; i++) {
        await until(begin + (i * 1_000) / CALM_PER_SECOND);
        signal.throwIfAborted();
        delays.push(submit());
        progress.tell(`${i + 1} jobs submitted`);
      }
      return Promise.all(delays);
    },
    close: async () => {
      await worker.drain();
      await punctual.close();
    },
  };
}
