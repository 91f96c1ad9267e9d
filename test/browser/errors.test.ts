import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ManyJobsAnswer } from '../../src/core/wire.js';
import { TestNode } from '../node-for-tests.js';
import { withClient } from '../postgres-client.js';
import { expectAccessible } from './accessibility.js';
import { Visit } from './visit.js';

/** Jobs that have failed, $2 of them like each other and one unlike them. */
const FAIL = `
  INSERT INTO punctual.job_history (id, tenant, queue, needs, rank, run_at, max_attempts, max_losses, at_most_once,
    timeout_ms, created_at, task, created_by, payload, attempts, failures, losses, worker, fence, epoch, claimed_at,
    started_at, outcome, state, error, finished_at)
  SELECT (lpad(to_hex($1::bigint - n / 100), 12, '0') || '7' || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
    'default', q.id, 1, 5, $1, 4, 3, false, 1000, $1, 'charge', 'test', '{"order": 7}', 1, 1, 0,
    '01890a5d-ac96-774b-bcce-b302099a8057', 1, 1, $1, $1, 'failed', 'failed',
    json_build_object('message', CASE WHEN n = 0 THEN 'Something else' ELSE 'Order ' || n || ' was refused' END,
      'code', 'REFUSED', 'stack', 'Error: refused' || chr(10) || '    at pay.ts:7'), $1::bigint
  FROM generate_series(0, $2::int) n, punctual.queues q WHERE q.tenant = 'default' AND q.name = 'default'`;
const MANY = 5_000;

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
  await node.submit({ task: 'charge', hold: true });
  await withClient(node.database.url, async (client) => {
    await client.query(FAIL, [Date.now() - 60_000, MANY]);
  });
});
afterAll(() => node.stop());

it('errors are grouped, a group shows a sample and its jobs, and 5,000 jobs are retried with a progress bar', async () => {
  const { page, requests } = await Visit.begin(node, { path: '/errors' });
  const group = page.getByRole('listitem').filter({ hasText: 'Order # was refused' });
  await group.getByText('5,000').waitFor();
  expect(await page.getByRole('main').getByRole('listitem').count()).toBe(2);
  await page.getByText('5,001 failed jobs in 2 groups').waitFor();
  await group.getByRole('button', { expanded: false }).first().click();
  await group.getByText('at pay.ts:7').waitFor();
  await expectAccessible(page);

  await group.getByRole('link', { name: 'Jobs' }).click();
  await expect.poll(() => new URL(page.url()).searchParams.get('fingerprint')).toMatch(/^[0-9a-f]{16}$/);
  await page.getByRole('table', { name: 'Jobs' }).getByText('REFUSED: Order').first().waitFor();
  await page.goBack();

  await group.getByRole('button', { name: 'Retry all' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('5,000 jobs will run again.').waitFor();
  await page.evaluate(`
    window.steps = [];
    new MutationObserver(() => {
      const bar = document.querySelector('dialog progress[value]');
      if (bar && bar.value !== window.steps.at(-1)) window.steps.push(bar.value);
    }).observe(document.querySelector('dialog'), { subtree: true, childList: true, attributes: true });
  `);
  const before = requests.length;
  await dialog.getByRole('button', { name: 'Retry 5,000 jobs' }).click();
  await dialog.getByText('Done. Retry: 5,000 jobs.').waitFor({ timeout: 120_000 });
  const steps = await page.evaluate<number[]>('window.steps');
  // It moved on in steps, and never back.
  expect(steps.length).toBeGreaterThan(2);
  expect(steps).toEqual([...steps].sort((a, b) => a - b));
  expect(requests.slice(before).filter((each) => each === 'POST /v1/jobs/redrive').length).toBeGreaterThan(2);
  const left = await node.get<ManyJobsAnswer>('POST', '/v1/jobs/redrive', { body: { dryRun: true } });
  expect(left.matched).toBe(1);
  await dialog.getByRole('button', { name: 'Close' }).last().click();
  await page.getByText('1 failed job in 1 group').waitFor();

  await page.getByRole('textbox', { name: 'Only of this task' }).fill('nobody');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Nothing has failed' }).waitFor();
  expect(new URL(page.url()).search).toBe('?task=nobody');
}, 180_000);
