import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { Cluster } from '../cluster.js';
import { LOAD_IN_WORDS, throughput } from '../loads.js';
import { percentText } from '../machine.js';
import { atLeast, atMost, ratioOfRates, type ScenarioResult } from '../result.js';
import { type Contestant, runRounds, withPostgres } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import { endLeader, Traffic } from './failover.js';

/** What a second at full rate leaves behind, about. */
const DEAD_ROWS_PER_SECOND = 30_000;
const NODES = 2;
/** The cluster works for so long before its leader ends. */
const STEADY_MS = 1_500;
const FIRST_START_TARGET_MS = 3_000;

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

/** Rows of jobs that ran and ended, on the segment of those that the traffic submits, as if all had come through it. */
async function leaveDeadRows(url: string, count: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    // Ids in the order of time, from so long before the traffic that no look at what is new finds them while they live.
    await client.query(
      `CREATE TEMP TABLE ended AS
       SELECT s.*, ms AS at, (lpad(to_hex(ms), 12, '0') || '7000' || substr(md5(n::text), 1, 16))::uuid AS id
       FROM (SELECT tenant, queue, needs, rank, min(run_at) AS began FROM punctual.job_history GROUP BY 1, 2, 3, 4) s
       CROSS JOIN generate_series(1, $1::int) n CROSS JOIN LATERAL (SELECT s.began - 3600000 - $1::int + n) t(ms)`,
      [count],
    );
    await client.query(
      `INSERT INTO punctual.jobs (id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once,
         timeout_ms, created_at, task, created_by, payload)
       SELECT id, tenant, queue, needs, rank, at, 4, 3, false, 1000, at, 'tick', 'bench', '{"n":0}' FROM ended ORDER BY id`,
    );
    await client.query(
      `INSERT INTO punctual.claims (job, fence, worker, epoch, claimed_at) SELECT id, 1, id, 1, at FROM ended ORDER BY id`,
    );
    await client.query('DELETE FROM punctual.claims WHERE job IN (SELECT id FROM ended)');
    await client.query('DELETE FROM punctual.jobs WHERE id IN (SELECT id FROM ended)');
  } finally {
    await client.end();
  }
}

interface PinnedFailover {
  readonly deadRows: number;
  readonly gap: number;
  readonly stolen: number | null;
  readonly problems: readonly string[];
}

/** Kills the leader while dead rows lie in front of everything that waits. */
function endLeaderBesideDeadRows(context: Context): Promise<PinnedFailover> {
  const deadRows = DEAD_ROWS_PER_SECOND * context.seconds;
  return withPostgres(context, (postgres) =>
    postgres.withDatabase('bench', (url) =>
      Cluster.with(url, NODES, async (cluster) => {
        const traffic = await Traffic.open(cluster);
        try {
          await pause(STEADY_MS, undefined, { signal: context.signal });
          return await pinningXmin(url, async () => {
            context.progress.tell(`leaving ${deadRows.toLocaleString('en')} dead rows`);
            await leaveDeadRows(url, deadRows);
            await pause(STEADY_MS, undefined, { signal: context.signal });
            const { gap, stolen } = await endLeader(cluster, traffic, 'SIGKILL', context.signal);
            context.progress.say(`  ${Math.round(gap)} ms after SIGKILL, beside ${deadRows} dead rows`);
            return { deadRows, gap, stolen, problems: await traffic.finish() };
          });
        } finally {
          await traffic.close();
        }
      }),
    ),
  );
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
    const failover = await endLeaderBesideDeadRows(context);
    return {
      ...{ scenario: 'pinned', seconds: context.seconds, ...rounds, ratioToBestPeer },
      problems: [...rounds.problems, ...failover.problems],
      what: [
        'Like `sustained`, while a transaction in the same database holds a snapshot and does nothing. The longer it is held, the more dead rows a system must step over, so longer slices tell more.',
        ...LOAD_IN_WORDS,
        `At the end, on a server of its own: ${NODES} nodes in processes of their own and a job every 10 ms as in \`failover\`, a snapshot that is held, and ${failover.deadRows.toLocaleString('en')} jobs that ran and ended in front of what waits. The leader is killed, and the time runs until a job starts under the next one. Others took ${percentText(failover.stolen)} of the processors' time meanwhile.`,
      ],
      targets: [
        ...(ratioToBestPeer === null
          ? []
          : [atLeast('rate beside Graphile Worker, both pinned', 4, ratioToBestPeer)]),
        atLeast('rate beside our own unpinned', 0.9, ours! / unpinned!),
        atMost('first start after the leader was killed', FIRST_START_TARGET_MS, failover.gap),
      ],
    };
  },
};
