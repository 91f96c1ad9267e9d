import { setTimeout as pause } from 'node:timers/promises';
import { Cluster } from '../cluster.js';
import { now, ticking } from '../moments.js';
import { type BenchPostgres, COUNTING_STATEMENTS, forgetStatements, statementCosts } from '../postgres.js';
import { loadSdk, productVersion } from '../product.js';
import { atMost, type ScenarioResult, type SystemResult } from '../result.js';
import { environmentOf, withPostgres } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import { rounded } from '../statistics.js';

const NODES = 2;
/** What happens once at the start does not belong to being idle. */
const SETTLE_MS = 10_000;
/** The few statements that are called most, for whoever wants to know where the budget goes. */
const TOP = 8;
const MEGABYTE = 2 ** 20;

interface Usage {
  readonly statementsPerSecond: number;
  readonly cpuPercent: number | null;
  readonly rssMb: number | null;
  readonly top: readonly string[];
}

export const idle: Scenario = {
  name: 'idle',
  title: 'Nothing to do: statements, processor time and memory per node',
  secondsMean: 'how long nothing happens',
  defaultSeconds: 60,
  run: (context: Context): Promise<ScenarioResult> =>
    withPostgres(
      context,
      (postgres) =>
        postgres.withDatabase('bench', async (url) => {
          const environment = environmentOf(postgres);
          const usage = await Cluster.with(url, NODES, (cluster) => watch(cluster, postgres, context));
          return describeUsage(context, usage, environment);
        }),
      COUNTING_STATEMENTS,
    ),
};

async function watch(cluster: Cluster, postgres: BenchPostgres, context: Context): Promise<Usage> {
  const { connect, task } = await loadSdk();
  const punctual = connect({ url: cluster.urls, apiKey: cluster.apiKey });
  const worker = punctual.worker([task('never', () => undefined)]);
  await worker.start();
  const stopTelling = ticking(1_000, () => context.progress.tell('nothing happens, as it should'));
  try {
    await pause(SETTLE_MS, undefined, { signal: context.signal });
    await forgetStatements(postgres);
    const before = cluster.nodes.map((node) => node.usage());
    const begin = now();
    await pause(context.seconds * 1_000, undefined, { signal: context.signal });
    const seconds = (now() - begin) / 1_000;
    const after = cluster.nodes.map((node) => node.usage());
    const statements = await statementCosts(postgres, 'bench');
    const calls = [...statements].sort((a, b) => b.calls - a.calls);
    const total = calls.reduce((sum, statement) => sum + statement.calls, 0);
    const cpu = after.map((usage, i) => (usage && before[i] ? usage.cpuMs - before[i].cpuMs : null));
    return {
      statementsPerSecond: rounded(total / seconds / NODES, 3),
      cpuPercent: worst(cpu.map((ms) => (ms === null ? null : rounded(ms / seconds / 10, 3)))),
      rssMb: worst(after.map((usage) => (usage === null ? null : rounded(usage.rssBytes / MEGABYTE)))),
      top: calls
        .slice(0, TOP)
        .map(({ calls, query }) => `${rounded(calls / seconds, 3)}/s ${query.slice(0, 100)}`),
    };
  } finally {
    stopTelling();
    await worker.drain();
    await punctual.close();
  }
}

function worst(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : Math.max(...known);
}

function describeUsage(
  context: Context,
  usage: Usage,
  environment: Readonly<Record<string, string>>,
): ScenarioResult {
  const { statementsPerSecond, cpuPercent, rssMb, top } = usage;
  const system: SystemResult = {
    ...{ name: 'punctual', role: 'ours', version: productVersion, jobs: 0 },
    settings: { nodes: NODES, workers: 1 },
    ...{ statementsPerSecond, ...(cpuPercent !== null && { cpuPercent }), ...(rssMb !== null && { rssMb }) },
    topStatements: top,
  };
  return {
    ...{ scenario: 'idle', seconds: context.seconds, systems: [system], ratioToBestPeer: null, environment },
    what: [
      `${NODES} nodes in processes of their own and one idle worker with heartbeats. After ${SETTLE_MS / 1_000} s of settling: all statements that Postgres counts in the database (pg_stat_statements), over the nodes; processor time and memory of the node that needs most.`,
      ...top.map((line) => `most called: ${line}`),
    ],
    targets: [
      atMost('statements per second and node', 2, statementsPerSecond, ''),
      ...(cpuPercent === null ? [] : [atMost('processor time of a node', 1, cpuPercent, ' %')]),
      ...(rssMb === null ? [] : [atMost('memory of a node', 150, rssMb, ' MB')]),
    ],
    problems: [],
  };
}
