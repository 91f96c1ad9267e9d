import { afterAll, beforeAll, expect, it } from 'vitest';

import type { JobPage } from '../../src/core/wire.js';
import { TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { slowStatements, statementTimes } from '../statement-times.js';
import { SCREENS } from './screens.js';
import { Visit } from './visit.js';

/** With a million jobs in history everything stays quick; `PUNCTUAL_TEST_ROWS` has it tried with more. */
const ROWS = Number(process.env.PUNCTUAL_TEST_ROWS ?? 1_000_000);
const LIMIT_MS = 50;
const DAY_MS = 86_400_000;

const FILL = `
  INSERT INTO punctual.job_history (id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once,
    timeout_ms, created_at, task, created_by, payload, attempts, failures, losses, worker, fence, epoch, claimed_at,
    started_at, outcome, state, error, finished_at)
  SELECT (lpad(to_hex($2::bigint + n), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
    'default', q.id, 1, 5, $2 + n, 4, 3, false, 1000, $2 + n, 'task-' || n % 1000, 'test',
    json_build_object('customer', n % 5000), 1, 0, 0, '01890a5d-ac96-774b-bcce-b302099a8057', 1, 1, $2 + n, $2 + n, 'succeeded',
    CASE WHEN n % 200 = 0 THEN 'failed' ELSE 'succeeded' END,
    CASE WHEN n % 200 = 0 THEN json_build_object('message', 'Order ' || n || ' was refused', 'code', 'E' || n % 3) END,
    $1::bigint
  FROM generate_series(1, $3::bigint) n, punctual.queues q WHERE q.tenant = 'default' AND q.name = 'default'`;

let node: TestNode;
beforeAll(
  async () => {
    node = await TestNode.start();
    await node.submit({ task: 'nobody', hold: true });
    await withClient(node.database.url, async (client) => {
      await client.query(FILL, [Date.now(), Date.now() - 4 * DAY_MS, ROWS]);
      await client.query('VACUUM ANALYZE punctual.job_history');
    });
  },
  Math.max(300_000, ROWS),
);
afterAll(() => node.stop());

it('a list of a million jobs is scrolled, filtered and opened with short statements', async () => {
  const times = statementTimes();
  const { page } = await Visit.begin(node, { path: '/jobs' });
  const table = page.getByRole('table', { name: 'Jobs' });
  const rows = table.locator('tbody tr:not([aria-hidden])');
  await rows.nth(20).waitFor();
  const scrolled = async (to: string) => {
    await page.evaluate(`document.querySelector('.table-scroller').scrollTop = ${to}`);
    return Number(await rows.first().getAttribute('aria-rowindex'));
  };

  // Beyond the pages that are kept, and back to the first row.
  const bottom = 'document.querySelector(".table-scroller").scrollHeight';
  await expect.poll(() => scrolled(bottom), { interval: 20, timeout: 60_000 }).toBeGreaterThan(2_000);
  expect(await rows.count()).toBeLessThan(100);
  await expect.poll(() => scrolled('0'), { interval: 20, timeout: 60_000 }).toBe(2);

  const filter = page.getByRole('combobox', { name: 'Filter jobs' });
  const shows = async (text: string, found: string) => {
    await filter.fill(text);
    await filter.press('Enter');
    await rows.getByText(found).first().waitFor();
  };
  await shows('state:failed', 'E0: Order');
  await shows('task:task-7', 'task-7');
  await shows('state:failed errorCode:E1', 'E1: Order');
  await shows('payload.customer=77', 'task-77');
  // What nobody has is looked for in parts, and somebody is asked before all of it is.
  await filter.fill('task:nobody-has-this');
  await filter.press('Enter');
  await page.getByText(/Looked at [\d,]+ jobs and found 0/).waitFor();
  await page.getByRole('button', { name: 'Look further' }).click();

  await shows('state:failed', 'E0: Order');
  await rows.first().getByRole('link').first().click();
  await page.getByRole('region', { name: 'Error' }).getByText('was refused').waitFor();
  await page.goto(`${node.url}/errors`);
  await page.getByText('Order # was refused').first().waitFor();
  expect(slowStatements(times, LIMIT_MS)).toEqual([]);
}, 120_000);

it('no screen needs a long statement, whatever it shows', async () => {
  const { data } = await node.get<JobPage>('GET', '/v1/jobs?state=failed&limit=1');
  const shown = [
    ...SCREENS.map(({ path }) => path).filter((path) => !path.includes(':')),
    ...['/?range=24h', '/queues/default', `/jobs/${data[0]!.id}`, '/jobs?state=failed&queue=default'],
  ];
  const times = statementTimes();
  const { page, root } = await Visit.begin(node, { path: '/submit' });
  // Twice, because the first time nothing of the tables may be in memory.
  for (const path of [...shown, ...shown]) {
    await page.goto(root + path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await expect.poll(() => page.locator('.placeholder, [aria-busy=true], .table-wait').count()).toBe(0);
  }
  expect(times.size).toBeGreaterThan(10);
  expect(slowStatements(times, LIMIT_MS)).toEqual([]);
}, 120_000);
