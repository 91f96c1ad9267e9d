import { setTimeout as pause } from 'node:timers/promises';
import { Cluster } from '../cluster.js';
import { percentText, watchStolenTime } from '../machine.js';
import { now } from '../moments.js';
import { loadSdk, productVersion } from '../product.js';
import { atMost, type ScenarioResult, type SystemResult } from '../result.js';
import { environmentOf, withPostgres } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import { spread } from '../statistics.js';

const NODES = 3;
const SUBMIT_EVERY_MS = 10;
/** The cluster is whole again for so long before the next leader ends. */
const STEADY_MS = 1_500;
/** Without a start for so long the scheduler has not come back. */
const PATIENCE_MS = 30_000;
const TARGET_MS = { SIGKILL: 1_500, SIGTERM: 200 } as const;

type Ending = keyof typeof TARGET_MS;

export const failover: Scenario = {
  name: 'failover',
  title: 'The leader ends, by SIGKILL and by SIGTERM: how long until the next job starts',
  secondsMean: 'how long leaders are ended, in turn by the one and the other signal',
  defaultSeconds: 90,
  run: (context: Context): Promise<ScenarioResult> =>
    withPostgres(context, (postgres) =>
      postgres.withDatabase('bench', async (url) => {
        const environment = environmentOf(postgres);
        const outcome = await Cluster.with(url, NODES, (cluster) => endLeaders(cluster, context));
        const systems = (['SIGKILL', 'SIGTERM'] as const).map((ending): SystemResult => {
          const name = ending === 'SIGKILL' ? 'punctual' : 'punctual-graceful';
          const role = ending === 'SIGKILL' ? 'ours' : 'reference';
          const settings = { nodes: NODES, signal: ending, 'lease TTL': '5 s (default)' };
          const { jobs } = outcome;
          return { name, role, version: productVersion, settings, jobs, ...spread(outcome.gaps[ending]) };
        });
        return {
          ...{ scenario: 'failover', seconds: context.seconds, systems, ratioToBestPeer: null, environment },
          what: [
            `${NODES} nodes in processes of their own; a worker and a submitter in the bench's process, over HTTP to all of them. A job every ${SUBMIT_EVERY_MS} ms, with a key. The leader ends, and the time runs from the signal to the first start of a job that a later leader has handed over; then a new node takes its place, and ${STEADY_MS / 1_000} s pass.`,
            'Every job whose submission was answered must have started, and none twice.',
            ...(outcome.late.length === 0
              ? []
              : [
                  `Beyond the target, with the share of the processors' time that other machines of the host took meanwhile: ${outcome.late.join(', ')}.`,
                ]),
          ],
          targets: systems.map((system, i) => {
            const ending = i === 0 ? 'SIGKILL' : 'SIGTERM';
            return atMost(`p99 after ${ending}`, TARGET_MS[ending], system.p99Ms!);
          }),
          problems: outcome.problems,
        };
      }),
    ),
};

interface Outcome {
  readonly gaps: Record<Ending, number[]>;
  /** The samples beyond their target, each with the share of the processors' time that others took meanwhile. */
  readonly late: readonly string[];
  readonly jobs: number;
  readonly problems: readonly string[];
}

async function endLeaders(cluster: Cluster, context: Context): Promise<Outcome> {
  const traffic = await Traffic.open(cluster);
  const gaps: Record<Ending, number[]> = { SIGKILL: [], SIGTERM: [] };
  const late: string[] = [];
  const end = now() + context.seconds * 1_000;
  try {
    do {
      for (const ending of ['SIGKILL', 'SIGTERM'] as const) {
        await pause(STEADY_MS, undefined, { signal: context.signal });
        const { gap, stolen } = await endLeader(cluster, traffic, ending, context.signal);
        gaps[ending].push(gap);
        const sample = `${Math.round(gap)} ms after ${ending} (${percentText(stolen)})`;
        if (gap > TARGET_MS[ending]) late.push(sample);
        context.progress.say(`  ${sample}`);
      }
    } while (now() < end);
    const problems = await traffic.finish();
    return { gaps, late, jobs: traffic.submitted, problems };
  } finally {
    await traffic.close();
  }
}

/** Ends the leader and puts another node in its place; gives the time until a job started under the next one. */
export async function endLeader(
  cluster: Cluster,
  traffic: Traffic,
  ending: Ending,
  signal: AbortSignal,
): Promise<{ readonly gap: number; readonly stolen: number | null }> {
  const { node, epoch } = await cluster.leader();
  const next = traffic.startAbove(epoch);
  const stolenSince = watchStolenTime();
  const moment = node.signal(ending);
  const enough = new AbortController();
  const late = pause(PATIENCE_MS, null, { signal: AbortSignal.any([signal, enough.signal]) });
  late.catch(() => undefined);
  const started = await Promise.race([next, late]);
  const stolen = stolenSince();
  enough.abort();
  if (started === null) throw new Error(`No job started within ${PATIENCE_MS / 1_000} s after ${ending}.`);
  await cluster.replace(node);
  return { gap: started - moment, stolen };
}

/** A steady trickle of jobs, and what has become of them. */
export class Traffic {
  submitted = 0;
  readonly #accepted = new Set<number>();
  readonly #started = new Map<number, number>();
  readonly #pending = new Set<Promise<void>>();
  readonly #stopping = new AbortController();
  #watched: { readonly epoch: number; readonly resolve: (moment: number) => void } | null = null;
  /** Lets go of everything, whatever is still to be done. */
  close!: () => Promise<void>;
  #submitting!: Promise<void>;

  static async open(cluster: Cluster): Promise<Traffic> {
    const { connect, task } = await loadSdk();
    const traffic = new Traffic();
    const punctual = connect({ url: cluster.urls, apiKey: cluster.apiKey, retryForMs: PATIENCE_MS });
    const tick = task('tick', ({ n }: { n: number }) => traffic.#start(n));
    const worker = punctual.worker([tick], {
      slots: 50,
      events: { onJobStarted: ({ epoch }) => traffic.#underEpoch(epoch) },
    });
    await worker.start();
    const submit = async (n: number) => {
      await punctual.submit(tick, { n }, { key: `tick-${n}` }).then(
        () => traffic.#accepted.add(n),
        // Nobody knows whether it is stored; it may start or not.
        () => undefined,
      );
    };
    traffic.#submitting = traffic.#submitSteadily(submit);
    traffic.close = async () => {
      traffic.#stopping.abort();
      await worker.stop();
      await punctual.close();
    };
    return traffic;
  }

  /** The moment of the next start under a later term than this. */
  startAbove(epoch: number): Promise<number> {
    return new Promise((resolve) => {
      this.#watched = { epoch, resolve };
    });
  }

  /** Submits no more, waits for what was submitted, and says what is wrong. */
  async finish(): Promise<readonly string[]> {
    this.#stopping.abort();
    await this.#submitting;
    await Promise.all(this.#pending);
    const missing = () => [...this.#accepted].filter((n) => !this.#started.has(n)).length;
    const patience = now() + PATIENCE_MS;
    while (missing() > 0 && now() < patience) await pause(50);
    const doubled = [...this.#started.values()].filter((times) => times > 1).length;
    return [
      ...(missing() > 0 ? [`${missing()} jobs never started`] : []),
      ...(doubled > 0 ? [`${doubled} jobs started more than once`] : []),
    ];
  }

  async #submitSteadily(submit: (n: number) => Promise<void>): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      const sent = submit(this.submitted++).finally(() => this.#pending.delete(sent));
      this.#pending.add(sent);
      await pause(SUBMIT_EVERY_MS);
    }
  }

  #start(n: number): void {
    this.#started.set(n, (this.#started.get(n) ?? 0) + 1);
  }

  #underEpoch(epoch: number): void {
    if (this.#watched === null || epoch <= this.#watched.epoch) return;
    this.#watched.resolve(now());
    this.#watched = null;
  }
}
