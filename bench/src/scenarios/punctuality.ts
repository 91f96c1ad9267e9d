import { secondsOfSlice } from '../loads.js';
import { atMost, type ScenarioResult } from '../result.js';
import { runRounds } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import type { SliceTask } from '../slices/slice.js';

const PER_SECOND = 1_000;

export const punctuality: Scenario = {
  name: 'punctuality',
  title: '1,000 jobs/s with random due times: how late they start',
  secondsMean: 'seconds of submissions, in two slices',
  defaultSeconds: 30,
  run: async (context: Context): Promise<ScenarioResult> => {
    const task: SliceTask = {
      ...{ kind: 'punctuality', seconds: secondsOfSlice(context.seconds), perSecond: PER_SECOND },
    };
    const rounds = await runRounds(context, [{ name: 'punctual', system: 'punctual', role: 'ours', task }]);
    const ours = rounds.systems[0]!;
    return {
      ...{ scenario: 'punctuality', seconds: context.seconds, ...rounds, ratioToBestPeer: null },
      what: [
        'Node, worker and submitter are one process. Ten bulks of 100 jobs a second, each job due 0.5 to 5 s after its submission, at random.',
        'Late is the wall clock in the first line of the handler minus the due time, in whole milliseconds. A job that starts early is an error.',
      ],
      targets: [
        atMost('p99 of how late jobs start', 20, ours.p99Ms!),
        atMost('jobs that start early', 0, ours.early as number, ''),
      ],
    };
  },
};
