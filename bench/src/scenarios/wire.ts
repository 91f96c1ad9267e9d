import { LOAD_IN_WORDS, throughput } from '../loads.js';
import { atLeast, ratioOfRates, type ScenarioResult } from '../result.js';
import { alsoWithQuotas, type Contestant, quotasInWords, runRounds } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';

/** Two billion jobs a day. */
const TWO_BILLION_A_DAY = 23_148;

export const wire: Scenario = {
  name: 'wire',
  title: 'The worker in another process, over HTTP',
  secondsMean: 'seconds per system, in two slices',
  defaultSeconds: 30,
  run: async (context: Context): Promise<ScenarioResult> => {
    const task = throughput(context.seconds);
    const contestants: Contestant[] = [
      ...alsoWithQuotas(context, { name: 'punctual', system: 'punctual-wire', role: 'ours', task }),
      { name: 'punctual-embedded', system: 'punctual', role: 'reference', task },
      ...context.peers
        .filter((peer) => peer === 'graphile-worker')
        .map((peer): Contestant => ({ name: peer, system: peer, role: 'peer', task })),
    ];
    const rounds = await runRounds(context, contestants);
    const rateOf = (wanted: string) => rounds.systems.find(({ name }) => name === wanted)!.jobsPerSecond!;
    const ours = rateOf('punctual');
    const ratioToBestPeer = ratioOfRates(rounds.systems);
    return {
      ...{ scenario: 'wire', seconds: context.seconds, ...rounds, ratioToBestPeer },
      what: [
        'Ours: node and submitter are one process, the worker is another and speaks HTTP on the loopback. `punctual-embedded` and the peer have everything in one process, without a network.',
        ...LOAD_IN_WORDS,
        ...quotasInWords(context),
      ],
      targets: [
        ...(ratioToBestPeer === null
          ? []
          : [atLeast('rate beside Graphile Worker in one process', 2.5, ratioToBestPeer)]),
        atLeast('rate beside our own in one process', 0.8, ours / rateOf('punctual-embedded')),
        atLeast('2 billion jobs a day', TWO_BILLION_A_DAY, ours, ' jobs/s'),
      ],
    };
  },
};
