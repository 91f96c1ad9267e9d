import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { Ledger } from '../ledger.js';
import { ticking } from '../moments.js';
import { loadSdk, loadServer, productVersion } from '../product.js';
import { atMost, type ScenarioResult, type SystemResult } from '../result.js';
import { environmentOf, withPostgres } from '../rounds.js';
import type { Context, Scenario } from '../scenario.js';
import { allStarted, problemsOf } from '../slices/throughput.js';
import { type Spread, spread } from '../statistics.js';

const SCHEDULES = 100_000;
const TARGET_MS = 10_000;
const SLOTS = 2_000;
const MINUTE_MS = 60_000;

/**
 * Rows as `POST /v1/schedules` would leave them, with ids that grow like those of the product; a hundred thousand
 * requests would only measure requests.
 */
const MAKE_SCHEDULES = `
  INSERT INTO punctual.schedules (id, tenant, name, definition, paused, watermark, fire_at, created_at, created_by,
    changed_at, changed_by)
  SELECT (lpad(to_hex($1::bigint - $4::int + n), 12, '0') || '7000' || '8' || substr(md5(n::text), 1, 15))::uuid, 'default', 'schedule-' || n, json_build_object('task', 'count', 'cron', $3::text,
      'payload', json_build_object('n', n)), false, $1::bigint, $2::bigint, $1, 'bench', $1, 'bench'
  FROM generate_series(0, $4::int - 1) n`;

/** What is on record about the instant, and whether any occurrence has more than one job. */
const READ_RECORD = `
  SELECT count(*)::int AS occurrences, count(DISTINCT job)::int AS jobs,
    (SELECT count(*)::int FROM punctual.job_history WHERE schedule IS NOT NULL AND occurrence = $1) AS ran
  FROM punctual.occurrences WHERE at = $1 AND job IS NOT NULL`;

export const cron: Scenario = {
  name: 'cron',
  title: '100,000 schedules due in the same minute: how long until all have started',
  secondsMean: 'seconds at least from the start of the node to the minute',
  defaultSeconds: 20,
  run: (context: Context): Promise<ScenarioResult> =>
    withPostgres(context, (postgres) =>
      postgres.withDatabase('bench', async (url) => {
        const environment = environmentOf(postgres);
        const { late, problems } = await measure(url, context);
        return describe(context, late, problems, environment);
      }),
    ),
};

interface Measured {
  readonly late: Spread;
  readonly problems: readonly string[];
}

async function measure(url: string, context: Context): Promise<Measured> {
  const folder = await mkdtemp(join(tmpdir(), 'punctual-bench-cron-'));
  const { startNode } = await loadServer();
  const { task } = await loadSdk();
  // The first start makes the tables.
  await (await startNode({ databaseUrl: url, data: folder })).stop();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const instant = await makeSchedules(client, context.seconds);
    const ledger = new Ledger();
    const late: number[] = [];
    const count = task('count', (input: { n: number }) => {
      late.push(Date.now() - instant);
      ledger.start(input.n);
    });
    const node = await startNode({ databaseUrl: url, data: folder });
    const worker = node.punctual.worker([count], { slots: SLOTS });
    await worker.start();
    const stopTelling = ticking(1_000, () =>
      context.progress.tell(`${ledger.started.toLocaleString('en')} started`),
    );
    await pause(Math.max(0, instant - Date.now()), undefined, { signal: context.signal });
    await allStarted(ledger, SCHEDULES);
    stopTelling();
    await worker.drain();
    await node.stop();
    const early = late.filter((ms) => ms < 0).length;
    return {
      late: spread(late),
      problems: [
        ...(early > 0 ? [`${early} jobs started early`] : []),
        ...problemsOf(await ledger.account(SCHEDULES)),
        ...(await wrongRecord(client, instant)),
      ],
    };
  } finally {
    await client.end();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Makes schedules that are due once a day, at the next full minute that is far enough ahead. */
async function makeSchedules(client: pg.Client, leadSeconds: number): Promise<number> {
  const now = Date.now();
  const instant = Math.ceil((now + leadSeconds * 1_000) / MINUTE_MS) * MINUTE_MS;
  const due = new Date(instant);
  const expression = `${due.getUTCMinutes()} ${due.getUTCHours()} * * *`;
  // A leader looks at them for the first time when it starts, and works out itself when they are due.
  await client.query(MAKE_SCHEDULES, [now, instant - 5_000, expression, SCHEDULES]);
  await client.query('ANALYZE punctual.schedules');
  return instant;
}

async function wrongRecord(client: pg.Client, instant: number): Promise<readonly string[]> {
  const { rows } = await client.query<Record<'occurrences' | 'jobs' | 'ran', number>>(READ_RECORD, [instant]);
  const { occurrences, jobs, ran } = rows[0]!;
  if (occurrences === SCHEDULES && jobs === SCHEDULES && ran === SCHEDULES) return [];
  return [`on record are ${occurrences} occurrences with ${jobs} jobs, of which ${ran} ran`];
}

function describe(
  context: Context,
  late: Spread,
  problems: readonly string[],
  environment: Readonly<Record<string, string>>,
): ScenarioResult {
  const system: SystemResult = {
    ...{ name: 'punctual', role: 'ours', version: productVersion, jobs: SCHEDULES, ...late },
    settings: { 'worker slots': SLOTS, history: 'kept' },
  };
  return {
    ...{ scenario: 'cron', seconds: context.seconds, systems: [system], ratioToBestPeer: null, environment },
    what: [
      `Node and worker are one process. ${SCHEDULES.toLocaleString('en')} schedules with a cron expression are due at the same minute; late is how long after it a handler starts. Every occurrence must have exactly one job and one start.`,
    ],
    targets: [atMost('the last start after the minute', TARGET_MS, late.worstMs)],
    problems,
  };
}
