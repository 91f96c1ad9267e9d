import { DEPTH, type GraphName, WIDTH } from '../graphs.js';
import { secondsOfSlice, throughput } from '../loads.js';
import { atLeast, atMost, type ScenarioResult, type SystemResult } from '../result.js';
import { type Contestant, runRounds } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import type { GraphTask } from '../slices/slice.js';

const WARM_UP_SECONDS = 2;
const DIAMONDS = 1_000;
const TARGETS = { share: 0.3, stepMs: 5 };

export const workflow: Scenario = {
  name: 'workflow',
  title: `Graphs: wide (1 → ${WIDTH.toLocaleString('en')} → 1), deep (${DEPTH.toLocaleString('en')} in a row), ${DIAMONDS.toLocaleString('en')} diamonds at once`,
  secondsMean: 'seconds per graph and system, in two slices',
  defaultSeconds: 20,
  run: async (context: Context): Promise<ScenarioResult> => {
    const rounds = await runRounds(context, contestantsOf(context));
    const [wide, plain] = [find(rounds.systems, 'wide'), find(rounds.systems, 'plain jobs')];
    const deep = find(rounds.systems, 'deep');
    return {
      ...{ scenario: 'workflow', seconds: context.seconds, ...rounds, ratioToBestPeer: null },
      what: [
        'Node, worker and submitter are one process, and workflows are submitted as jobs are: `punctual.start()` and `punctual.submitMany()`. Handlers count and return. A step counts when its handler starts.',
        `wide: two graphs on their way at a time, each submitted when the one before has ended; wide over HTTP: the same, with requests in place of punctual.start(). plain jobs: the load of \`sustained\`. in bulks: as many plain jobs as a wide graph has steps in one request, two on their way at a time.`,
        `deep: one graph at a time; the times are those from the start of one step to the start of the next, of every step in the slice. diamonds: ${DIAMONDS.toLocaleString('en')} graphs of four steps submitted at once. All other times are from a submission to the last start.`,
        "BullMQ's flows are trees, in which no step is waited for by two: its wide graph has no first step.",
        `The first ${WARM_UP_SECONDS} s of each slice do not count.`,
      ],
      targets: [
        atLeast(
          'rate of a wide graph beside plain jobs',
          TARGETS.share,
          wide.jobsPerSecond! / plain.jobsPerSecond!,
        ),
        atMost('median of a step in a deep graph', TARGETS.stepMs, deep.p50Ms!),
      ],
    };
  },
};

function contestantsOf({ seconds, peers }: Context): Contestant[] {
  const task = (graph: GraphName | null, more: Partial<GraphTask> = {}): GraphTask => ({
    ...{ kind: 'graphs', graph, graphs: 1, lanes: 1, way: 'program', measure: 'group' },
    ...{ seconds: secondsOfSlice(seconds), warmUpSeconds: WARM_UP_SECONDS, ...more },
  });
  const ours = { system: 'punctual', role: 'ours' } as const;
  const plain = { system: 'punctual', role: 'reference' } as const;
  const peer = { system: 'bullmq', role: 'peer' } as const;
  return [
    { ...ours, name: 'wide', task: task('wide', { lanes: 2 }) },
    { ...plain, name: 'wide over HTTP', task: task('wide', { lanes: 2, way: 'http' }) },
    { ...plain, name: 'plain jobs', task: throughput(seconds) },
    { ...plain, name: 'in bulks', task: task(null, { graphs: WIDTH + 2, lanes: 2 }) },
    { ...ours, name: 'deep', task: task('deep', { measure: 'step' }) },
    { ...ours, name: 'diamonds', task: task('diamond', { graphs: DIAMONDS }) },
    ...(peers.includes('bullmq')
      ? [
          { ...peer, name: 'bullmq wide', task: task('fan-in', { lanes: 2 }) },
          { ...peer, name: 'bullmq deep', task: task('deep', { measure: 'step' }) },
        ]
      : []),
  ];
}

function find(systems: readonly SystemResult[], wanted: string): SystemResult {
  return systems.find(({ name }) => name === wanted)!;
}
