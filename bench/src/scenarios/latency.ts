import { secondsOfSlice } from '../loads.js';
import { atMost, ratioOfDelays, type ScenarioResult, type SystemResult, type Target } from '../result.js';
import { alsoWithQuotas, type Contestant, quotasInWords, runRounds } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import type { SliceTask } from '../slices/slice.js';

const WARM_UP_SECONDS = 1;

export const latency: Scenario = {
  name: 'latency',
  title: 'From submission to the start of the handler, one job at a time, idle system',
  secondsMean: 'seconds per system, in two slices',
  defaultSeconds: 20,
  run: async (context: Context): Promise<ScenarioResult> => {
    const task: SliceTask = {
      ...{ kind: 'latency', seconds: secondsOfSlice(context.seconds), warmUpSeconds: WARM_UP_SECONDS },
    };
    const contestants: Contestant[] = [
      ...alsoWithQuotas(context, { name: 'punctual', system: 'punctual', role: 'ours', task }),
      ...context.peers
        // pg-boss polls, at most twice a second, which is another thing.
        .filter((peer) => peer !== 'pg-boss')
        .map((peer): Contestant => ({ name: peer, system: peer, role: 'peer', task })),
    ];
    const rounds = await runRounds(context, contestants);
    return {
      ...{ scenario: 'latency', seconds: context.seconds, ...rounds },
      ratioToBestPeer: ratioOfDelays(rounds.systems),
      what: [
        'One process per system. The time runs from the call that submits one job to the first line of its handler; the next job is submitted 5 to 15 ms after both the call and the handler have ended.',
        `The first ${WARM_UP_SECONDS} s of each slice does not count. The ratio is the best peer's p50 over ours. Ours and Graphile Worker commit with fsync; Redis writes once a second.`,
        ...quotasInWords(context),
      ],
      targets: rounds.systems
        .filter(({ role }) => role === 'peer')
        .flatMap(targetsBeside(rounds.systems[0]!)),
    };
  },
};

function targetsBeside(ours: SystemResult): (peer: SystemResult) => readonly Target[] {
  return (peer) => {
    const stretch = peer.name === 'bullmq' ? ' (stretch)' : '';
    return [
      atMost(`p50 below ${peer.name}'s${stretch}`, peer.p50Ms!, ours.p50Ms!),
      atMost(`p99 below ${peer.name}'s${stretch}`, peer.p99Ms!, ours.p99Ms!),
    ];
  };
}
