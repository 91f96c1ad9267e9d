import { LOAD_IN_WORDS, throughput } from '../loads.js';
import { atLeast, ratioOfRates, type ScenarioResult } from '../result.js';
import { alsoWithQuotas, type Contestant, quotasInWords, runRounds } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';

export const sustained: Scenario = {
  name: 'sustained',
  title: 'Submit and run, side by side, history kept',
  secondsMean: 'seconds per system, in two slices',
  defaultSeconds: 30,
  run: async (context: Context): Promise<ScenarioResult> => {
    const task = throughput(context.seconds);
    const contestants: Contestant[] = [
      ...alsoWithQuotas(context, { name: 'punctual', system: 'punctual', role: 'ours', task }),
      ...context.peers.map((peer): Contestant => ({ name: peer, system: peer, role: 'peer', task })),
    ];
    const rounds = await runRounds(context, contestants);
    const ratioToBestPeer = ratioOfRates(rounds.systems);
    return {
      ...{ scenario: 'sustained', seconds: context.seconds, ...rounds, ratioToBestPeer },
      what: [
        'Node, worker and submitter are one process, for every system.',
        ...LOAD_IN_WORDS,
        ...quotasInWords(context),
      ],
      targets: ratioToBestPeer === null ? [] : [atLeast('rate beside the best peer', 3, ratioToBestPeer)],
    };
  },
};
