import { atMost, type ScenarioResult } from '../result.js';
import { runRounds } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import type { SliceTask } from '../slices/slice.js';

const JOBS = 100_000;
const TARGET_MS = 5_000;
/** A herd that is still being submitted at its instant shows nothing, so there is always time for that. */
const LEAST_LEAD_SECONDS = 20;

export const herd: Scenario = {
  name: 'herd',
  title: '100,000 jobs due at one instant: how long until all have started',
  secondsMean: `seconds from the first submission to the instant, at least ${LEAST_LEAD_SECONDS} (two herds)`,
  defaultSeconds: 20,
  run: async (context: Context): Promise<ScenarioResult> => {
    const leadSeconds = Math.max(LEAST_LEAD_SECONDS, context.seconds);
    const task: SliceTask = { kind: 'herd', jobs: JOBS, leadSeconds };
    const rounds = await runRounds(context, [{ name: 'punctual', system: 'punctual', role: 'ours', task }]);
    return {
      ...{ scenario: 'herd', seconds: leadSeconds, ...rounds, ratioToBestPeer: null },
      what: [
        `Node, worker and submitter are one process. ${JOBS.toLocaleString('en')} jobs are submitted ahead, all due at the same instant; late is how long after it a handler starts. Two herds, each in a database of its own.`,
      ],
      targets: [atMost('the last start after the instant', TARGET_MS, rounds.systems[0]!.worstMs!)],
    };
  },
};
