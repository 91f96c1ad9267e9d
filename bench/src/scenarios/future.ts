import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { LOAD_IN_WORDS, throughput } from '../loads.js';
import { ticking } from '../moments.js';
import { loadServer } from '../product.js';
import { atLeast, type ScenarioResult } from '../result.js';
import { type Contestant, runRoundsOn, withPostgres } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';

const FUTURE_JOBS = 10_000_000;
/** Rows per statement, so that progress can be told and an interruption be heard. */
const PORTION = 250_000;

/** Stores one far-future job through the product and multiplies its row, with ids and moments of its own each. */
async function fill(url: string, context: Context): Promise<void> {
  await submitOneFarAhead(url);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  let done = 1;
  const stopTelling = ticking(1_000, () =>
    context.progress.tell(`storing jobs of the far future: ${done.toLocaleString('en')}`),
  );
  try {
    const { rows } = await client.query<{ name: string }>(
      `SELECT attname AS name FROM pg_attribute
       WHERE attrelid = 'punctual.later'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum`,
    );
    // Due evenly over a year, from a day ahead on.
    const own: Record<string, string> = {
      id: 'uuidv7()',
      admit_at: 'l.admit_at + (n * 3600)',
      run_at: 'l.run_at + (n * 3600)',
    };
    const columns = rows.map(({ name }) => pg.escapeIdentifier(name)).join(', ');
    const values = rows.map(({ name }) => own[name] ?? `l.${pg.escapeIdentifier(name)}`).join(', ');
    await client.query('CREATE TEMP TABLE template AS TABLE punctual.later');
    while (done < FUTURE_JOBS) {
      context.signal.throwIfAborted();
      const size = Math.min(PORTION, FUTURE_JOBS - done);
      await client.query(
        `INSERT INTO punctual.later (${columns})
         SELECT ${values} FROM template l, generate_series($1::bigint, $2::bigint) AS n`,
        [done, done + size - 1],
      );
      done += size;
    }
    await client.query('VACUUM ANALYZE punctual.later');
  } finally {
    stopTelling();
    await client.end();
  }
}

async function submitOneFarAhead(url: string): Promise<void> {
  const data = await mkdtemp(join(tmpdir(), 'punctual-bench-future-'));
  const { startNode } = await loadServer();
  const node = await startNode({ databaseUrl: url, data });
  try {
    await node.punctual.submit('count', { n: 0 }, { delay: '1d' });
  } finally {
    await node.stop();
    await rm(data, { recursive: true, force: true });
  }
}

export const future: Scenario = {
  name: 'future',
  title: 'Submit and run beside 10 million jobs of the far future',
  secondsMean: 'seconds with and without them, in two slices each',
  defaultSeconds: 30,
  run: (context: Context): Promise<ScenarioResult> =>
    withPostgres(context, (postgres) =>
      postgres.withDatabase('bench_future', async (url) => {
        await fill(url, context);
        const task = throughput(context.seconds);
        const contestants: Contestant[] = [
          { name: 'punctual', system: 'punctual', role: 'ours', task, url },
          { name: 'punctual-without', system: 'punctual', role: 'reference', task },
        ];
        const rounds = await runRoundsOn(postgres, context, contestants);
        const [ours, without] = rounds.systems.map((system) => system.jobsPerSecond!);
        return {
          ...{ scenario: 'future', seconds: context.seconds, ...rounds, ratioToBestPeer: null },
          what: [
            `${FUTURE_JOBS.toLocaleString('en')} jobs due a day to a year ahead wait in the same database. One is submitted through the product; the others are copies of its row with ids and due times of their own, inserted by SQL, because submitting them would take long and is not what is measured.`,
            ...LOAD_IN_WORDS,
          ],
          targets: [atLeast('rate beside our own without them', 0.9, ours! / without!)],
        };
      }),
    ),
};
