import { secondsOfSlice, throughput } from '../loads.js';
import { atLeast, atMost, type ScenarioResult } from '../result.js';
import { type Contestant, runRounds } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import type { CallsTask } from '../slices/slice.js';

/** Two billion calls a day. */
const TWO_BILLION_A_DAY = 23_148;
const SHARE = 0.6;
const FAST_PER_SECOND = 1_000;
const SLOW = { receivers: 1_000, ms: 5_000 } as const;
/** Until all slow receivers are busy, and some more. */
const WARM_UP_SECONDS = 7;
/** What slow receivers may add to the delay of fast calls, beside doubling it. */
const ADDED_MS = 20;

export const http: Scenario = {
  name: 'http',
  title: 'HTTP targets: calls beside a bare loop, and fast calls beside slow receivers',
  secondsMean: 'seconds per system, in two slices',
  defaultSeconds: 20,
  run: async (context: Context): Promise<ScenarioResult> => {
    const rounds = await runRounds(context, contestantsOf(context));
    const find = (wanted: string) => rounds.systems.find(({ name }) => name === wanted)!;
    const rate = find('punctual').jobsPerSecond!;
    const [alone, beside] = [find('fast alone').p99Ms!, find('fast beside slow').p99Ms!];
    const workers = Math.ceil(TWO_BILLION_A_DAY / rate);
    return {
      ...{ scenario: 'http', seconds: context.seconds, ...rounds, ratioToBestPeer: null },
      what: [
        'The receiver is a process of its own, on the loopback, and answers at once with a small JSON; a job counts when its call arrives, and all of them must be in history as succeeded in the end. Node and submitter are one process, the worker is another: `punctual worker run --targets http`. Calls are signed and carry a token and a trace.',
        '`bare undici` is a loop that makes the same calls with the same library and as many connections, and does nothing else. `our headers`: the same with as many headers as our calls have, which the receiver has to read; for information.',
        `${rate.toLocaleString('en')} calls/s on this machine, which also runs Postgres and the receiver: ${workers} times that is ${TWO_BILLION_A_DAY.toLocaleString('en')} calls/s, two billion a day.`,
        `fast alone, fast beside slow: ${FAST_PER_SECOND.toLocaleString('en')} calls a second to one origin, in bulks of ten; the times are those from the submission to the arrival of the call. Beside them, ${SLOW.receivers.toLocaleString('en')} origins that take ${SLOW.ms / 1_000} s to answer, each with a call on its way at any time.`,
      ],
      targets: [
        atLeast('rate beside a bare loop', SHARE, rate / find('bare undici').jobsPerSecond!),
        atMost('p99 of fast calls beside slow receivers', 2 * alone + ADDED_MS, beside),
      ],
    };
  },
};

function contestantsOf({ seconds }: Context): Contestant[] {
  const calls = (slow: CallsTask['slow']): CallsTask => ({
    ...{ kind: 'calls', seconds: secondsOfSlice(seconds), warmUpSeconds: WARM_UP_SECONDS },
    ...{ perSecond: FAST_PER_SECOND, slow },
  });
  const ours = { system: 'punctual-http', role: 'reference' } as const;
  return [
    { ...ours, name: 'punctual', role: 'ours', task: throughput(seconds) },
    { name: 'bare undici', system: 'bare-calls', role: 'reference', task: throughput(seconds) },
    {
      ...{ name: 'bare undici, our headers', system: 'bare-calls-like-ours', role: 'reference' },
      task: throughput(seconds),
    },
    { ...ours, name: 'fast alone', task: calls(null) },
    { ...ours, name: 'fast beside slow', task: calls(SLOW) },
  ];
}
