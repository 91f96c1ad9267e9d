import { LOAD_IN_WORDS, throughput } from '../loads.js';
import { atLeast, type ScenarioResult } from '../result.js';
import { type Contestant, runRoundsOn, withPostgres } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import { CHANGES_PER_JOB } from '../slices/heard.js';
import type { Listening } from '../slices/slice.js';

const CHANGES_PER_SECOND = 10_000;
const LISTENERS = 50;
/** A few percent are looked for, and single slices differ by more. */
const ROUNDS = 6;
const WATCHED_PER_SECOND = Math.ceil(CHANGES_PER_SECOND / CHANGES_PER_JOB);

export const events: Scenario = {
  name: 'events',
  title: 'The same while 50 listeners hear 10,000 changes/s each, and while nobody listens',
  secondsMean: `seconds with listeners, and without, in ${ROUNDS} slices each`,
  defaultSeconds: 30,
  run: async (context: Context): Promise<ScenarioResult> => {
    const contestant = (name: string, listening: Listening): Contestant => ({
      ...{ name, system: 'punctual-heard', role: name === 'punctual' ? 'ours' : 'reference' },
      task: {
        ...throughput(context.seconds, ROUNDS),
        kind: 'heard',
        watchedPerSecond: WATCHED_PER_SECOND,
        listening,
      },
    });
    const contestants = [
      contestant('punctual', { count: LISTENERS, to: 'tenant' }),
      contestant('punctual-unheard', { count: 0, to: 'tenant' }),
      contestant('punctual-quiet', { count: LISTENERS, to: 'quiet' }),
      contestant('punctual-queue', { count: LISTENERS, to: 'queue' }),
    ];
    const rounds = await withPostgres(context, async (postgres) => {
      // The first slice on a new server is slower than all others, and counts for nobody.
      await runRoundsOn(postgres, context, [contestants[1]!], 1);
      return runRoundsOn(postgres, context, contestants, ROUNDS);
    });
    const [heard, unheard, quiet] = rounds.systems.map((system) => system.jobsPerSecond!);
    return {
      ...{ scenario: 'events', seconds: context.seconds, ...rounds, ratioToBestPeer: null },
      what: [
        `The load of \`sustained\`, for one tenant, beside ${WATCHED_PER_SECOND.toLocaleString('en')} jobs a second of another, in bulks over HTTP; one process has the node, the worker for all and both submitters. Each of the ${WATCHED_PER_SECOND.toLocaleString('en')} jobs changes ${CHANGES_PER_JOB} times. The rate is of all jobs.`,
        `\`punctual\`: ${LISTENERS} listeners hear all changes of the second tenant, so ${(LISTENERS * CHANGES_PER_SECOND).toLocaleString('en')} events are delivered in a second. \`punctual-unheard\`: nobody listens. \`punctual-quiet\`: the ${LISTENERS} listen to a third tenant, in which nothing happens. \`punctual-queue\`: all jobs are of one tenant, the smaller part in a queue of its own, and the ${LISTENERS} listen to that queue; the leader writes down the changes of all jobs of the tenant.`,
        'The listeners are in a process of their own and read without parsing, but they share the two processors: `listeners CPU %` says how much of one they take. `node µs/job` is the processor time of the process with the node, and does not count theirs. The first listener must hear every change exactly once, and the others as many bytes.',
        ...LOAD_IN_WORDS,
      ],
      targets: [
        atLeast(`rate with ${LISTENERS} listeners beside without`, 0.9, heard! / unheard!),
        atLeast('rate of those nobody listens to, beside without any listener', 0.95, quiet! / unheard!),
      ],
    };
  },
};
