import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ErrorGroupsView, ForecastView } from '../../../src/core/wire.js';
import type { Queryable } from '../../../src/store/database.js';
import { readErrorGroups } from '../../../src/store/error-groups.js';
import { countLater } from '../../../src/store/jobs-ahead.js';
import { TestNode } from '../../node-for-tests.js';
import { withClient } from '../../postgres-client.js';

/** No statement of the dashboard's figures takes long, however much there is. More rows: PUNCTUAL_FIGURES_ROWS=10000000. */
const ROWS = Number(process.env.PUNCTUAL_FIGURES_ROWS ?? 100_000);
const FAILED = 12_000;
const LATER = 30_000;
const LIMIT_MS = 50;

const FILL = `
  INSERT INTO punctual.job_history (id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once,
    timeout_ms, created_at, task, created_by, payload, attempts, failures, losses, worker, fence, epoch, claimed_at,
    started_at, outcome, state, error, finished_at)
  SELECT (lpad(to_hex($1::bigint - n / 100), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
    'default', q.id, 1, 5, $1, 4, 3, false, 1000, $1, 'task-' || n % 7, 'test', json_build_object('text', repeat('x', 100)),
    1, 0, 0, '01890a5d-ac96-774b-bcce-b302099a8057', 1, 1, $1, $1, 'failed',
    CASE WHEN n % $3::int = 0 THEN 'failed' ELSE 'succeeded' END,
    CASE WHEN n % $3::int = 0 THEN json_build_object('message', 'Order ' || n || ' of ' || md5(n::text) || ' was refused by host-' || n,
      'code', 'E' || n % 3, 'stack', repeat('at somewhere ', 100)) END,
    $1::bigint
  FROM generate_series(1, $2::bigint) n, punctual.queues q WHERE q.tenant = 'default' AND q.name = 'default'`;

/** All of one moment, which is the worst: a herd. */
const FILL_LATER = `
  INSERT INTO punctual.later SELECT (json_populate_record(l, json_build_object('id', gen_random_uuid(), 'held', false,
    'admit_at', $1::bigint, 'run_at', $1::bigint + 600000))).* FROM punctual.later l, generate_series(1, $2::int)`;

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
  await node.submit({ task: 'nobody', hold: true });
  await withClient(node.database.url, async (client) => {
    await client.query(FILL, [Date.now(), ROWS, Math.max(1, Math.floor(ROWS / FAILED))]);
    await client.query(FILL_LATER, [Date.now() + 1_200_000, LATER]);
    await client.query('VACUUM ANALYZE punctual.job_history');
    await client.query('VACUUM ANALYZE punctual.later');
  });
}, 600_000);
afterAll(() => node.stop());

/** The connections of the node, with the time that each statement took. */
function timed(db: Queryable, times: number[]): Queryable {
  const query = async (...args: unknown[]) => {
    const from = performance.now();
    const answer = await (db.query as (...all: unknown[]) => Promise<unknown>)(...args);
    times.push(performance.now() - from);
    return answer;
  };
  return { query } as Queryable;
}

/** Others may use the machine meanwhile, so single slow ones do not count. */
const median = (times: readonly number[]) => [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)]!;

it('grouping failed jobs takes short statements, and a bounded number of them', async () => {
  const [{ reads }] = node.node.context.shards;
  const times: number[] = [];
  const window = { from: Date.now() - 86_400_000, intervalMs: 3_600_000, intervals: 48 };
  const { groups, complete } = await readErrorGroups(
    (work) => reads.read('default', (db) => work(timed(db, times))),
    'default',
    window,
    null,
    10_000,
  );
  expect([groups.reduce((sum, { count }) => sum + count, 0), complete]).toEqual([10_000, false]);
  // Seven tasks with three codes; what is different in the messages is left out.
  expect(groups).toHaveLength(21);
  expect(times).toHaveLength(50);
  if (process.env.PUNCTUAL_FIGURES_ROWS) console.log(times.map(Math.round).join(' '));
  expect(median(times)).toBeLessThan(LIMIT_MS);
  const { data } = await node.get<ErrorGroupsView>('GET', '/v1/errors');
  expect(data[0]!.message).toBe('Order # of # was refused by host-#');
}, 60_000);

it('counting what becomes due takes short statements', async () => {
  const [{ pool, clock }] = node.node.context.shards;
  const times: number[] = [];
  const counts = Array.from({ length: 60 }, () => 0);
  const from = Math.floor(clock.now() / 60_000) * 60_000;
  expect(await countLater(timed(pool, times), 'default', from, counts, 200_000)).toBe(true);
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(LATER);
  expect(times.length).toBeLessThanOrEqual(LATER / 10_000 + 1);
  if (process.env.PUNCTUAL_FIGURES_ROWS) console.log(times.map(Math.round).join(' '));
  expect(median(times)).toBeLessThan(LIMIT_MS);
  const { data } = await node.get<ForecastView>('GET', '/v1/forecast');
  expect(data.filter(({ herd }) => herd)).toHaveLength(1);
}, 60_000);
