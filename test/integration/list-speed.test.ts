import { expect, it } from 'vitest';
import type { JobPage } from '../../src/core/wire.js';
import { nodeForTest } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';

/**
 * How long gets and lists take beside millions of ended jobs. It takes minutes and is not part of `npm test`:
 * PUNCTUAL_LIST_SPEED_ROWS=2000000 node node_modules/vitest/vitest.mjs run --project integration test/integration/list-speed
 */
const ROWS = Number(process.env.PUNCTUAL_LIST_SPEED_ROWS ?? 0);
const AT_ONCE = 250_000;
const CALLS = 15;
/** What a filter by index may take at 10 million rows. */
const LIMIT_MS = 50;
const DAY_MS = 86_400_000;

const FILL = `
  INSERT INTO punctual.job_history (id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once,
    timeout_ms, created_at, task, created_by, key, schedule, payload, attempts, failures, losses, worker, fence, epoch,
    claimed_at, started_at, outcome, state, error, finished_at)
  SELECT (lpad(to_hex($2::bigint + n), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
    'default', q.id, 1, 5, $2 + n, 4, 3, false, 1000, $2 + n, 'task-' || n % 1000, 'test',
    CASE WHEN n % 100 = 0 THEN 'order-' || n END, CASE WHEN n % 1000 = 0 THEN 'nightly' END,
    json_build_object('customer', n % 5000, 'text', repeat('x', 100)), 1, 0, 0, '01890a5d-ac96-774b-bcce-b302099a8057', 1, 1,
    $2 + n, $2 + n, 'succeeded', CASE WHEN n % 200 = 0 THEN 'failed' ELSE 'succeeded' END,
    CASE WHEN n % 200 = 0 THEN json_build_object('message', 'no', 'code', 'E' || n % 3) END,
    -- Spread over days, as finished jobs are, in the order of their ids.
    $1::bigint + n * (13::bigint * 86400000) / $5::bigint
  FROM generate_series($3::bigint, $4::bigint) n, punctual.queues q WHERE q.tenant = 'default' AND q.name = 'default'`;

it.skipIf(ROWS === 0)(
  'gets, lists and filters by index stay quick',
  async () => {
    const node = await nodeForTest();
    await node.submit({ task: 'nobody', hold: true });
    // Ids of the two weeks before now; they may end in the days for which there are partitions.
    const made = Date.now() - 14 * DAY_MS;
    const step = await withClient(node.database.url, async (client) => {
      for (let from = 1; from <= ROWS; from += AT_ONCE) {
        const to = Math.min(ROWS, from + AT_ONCE - 1);
        await client.query(FILL, [Date.now(), made, from, to, ROWS]);
      }
      await client.query(
        'INSERT INTO punctual.keys (tenant, key, job) SELECT tenant, key, id FROM punctual.job_history WHERE key IS NOT NULL',
      );
      await client.query('VACUUM ANALYZE punctual.job_history');
      const { rows } = await client.query(
        'SELECT id FROM punctual.job_history ORDER BY id OFFSET $1 LIMIT 1',
        [Math.floor(ROWS / 2)],
      );
      return rows[0].id as string;
    });
    const at = (n: number) => new Date(made + n).toISOString();
    const indexed: Record<string, string> = {
      get: `/v1/jobs/${step}`,
      list: '/v1/jobs',
      'list of 50': '/v1/jobs?limit=50',
      'page in the middle': `/v1/jobs?after=${step}`,
      failed: '/v1/jobs?state=failed',
      running: '/v1/jobs?state=running',
      succeeded: '/v1/jobs?state=succeeded',
      queue: '/v1/jobs?queue=default',
      'time range': `/v1/jobs?since=${at(ROWS / 2)}&until=${at(ROWS / 2 + 500)}`,
      'failed of a time': `/v1/jobs?state=failed&since=${at(ROWS / 2)}&until=${at(ROWS / 2 + 50_000)}`,
      schedule: '/v1/jobs?schedule=nightly',
      key: '/v1/jobs?key=order-500000',
      'key prefix': '/v1/jobs?keyPrefix=order-5000',
    };
    const scanned: Record<string, string> = {
      task: '/v1/jobs?task=task-7',
      'failed by code': '/v1/jobs?state=failed&errorCode=E1',
      payload: '/v1/jobs?payload.customer=7',
      'nothing fits': '/v1/jobs?task=nobody-has-it',
    };
    const measured: Record<string, unknown>[] = [];
    for (const [name, path] of Object.entries({ ...indexed, ...scanned })) {
      const times: number[] = [];
      let page: Partial<JobPage> = {};
      for (let call = 0; call < CALLS; call++) {
        const before = performance.now();
        page = await node.get<JobPage>('GET', path);
        times.push(performance.now() - before);
      }
      times.sort((a, b) => a - b);
      const ms = Math.round(times[Math.floor(CALLS / 2)]! * 10) / 10;
      const { data, scanned: looked, complete } = page;
      measured.push({ name, ms, worst: Math.round(times.at(-1)!), jobs: data?.length, looked, complete });
    }
    console.table(measured);
    for (const { name, ms } of measured)
      if (String(name) in indexed) expect(ms, String(name)).toBeLessThan(LIMIT_MS);
  },
  1_200_000,
);
