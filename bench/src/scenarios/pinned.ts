import pg from 'pg';
import { LOAD_IN_WORDS, throughput } from '../loads.js';
import { atLeast, ratioOfRates, type ScenarioResult } from '../result.js';
import { type Contestant, runRounds } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';

/** Holds a snapshot in an idle transaction of the same database, so that no dead row can be removed meanwhile. */
async function pinningXmin<T>(url: string, slice: () => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await client.query('SELECT pg_current_xact_id()');
    return await slice();
  } finally {
    await client.end();
  }
}

export const pinned: Scenario = {
  name: 'pinned',
  title: 'The same while an idle transaction pins the xmin horizon',
  secondsMean: 'seconds per system, in two slices',
  defaultSeconds: 60,
  run: async (context: Context): Promise<ScenarioResult> => {
    const task = throughput(context.seconds);
    const contestants: Contestant[] = [
      { name: 'punctual', system: 'punctual', role: 'ours', task, around: pinningXmin },
      { name: 'punctual-unpinned', system: 'punctual', role: 'reference', task },
      ...context.peers
        .filter((peer) => peer === 'graphile-worker')
        .map((peer): Contestant => ({ name: peer, system: peer, role: 'peer', task, around: pinningXmin })),
    ];
    const rounds = await runRounds(context, contestants);
    const [ours, unpinned] = rounds.systems.map((system) => system.jobsPerSecond!);
    const ratioToBestPeer = ratioOfRates(rounds.systems);
    return {
      ...{ scenario: 'pinned', seconds: context.seconds, ...rounds, ratioToBestPeer },
      what: [
        'Like `sustained`, while a transaction in the same database holds a snapshot and does nothing. The longer it is held, the more dead rows a system must step over, so longer slices tell more.',
        ...LOAD_IN_WORDS,
      ],
      targets: [
        ...(ratioToBestPeer === null
          ? []
          : [atLeast('rate beside Graphile Worker, both pinned', 4, ratioToBestPeer)]),
        atLeast('rate beside our own unpinned', 0.9, ours! / unpinned!),
      ],
    };
  },
};
