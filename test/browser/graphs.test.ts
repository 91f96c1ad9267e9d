import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Batch } from '../../src/core/batch.js';
import { task } from '../../src/core/task.js';
import type { Workflow } from '../../src/core/workflow.js';
import { TestNode } from '../node-for-tests.js';
import { expectAccessible } from './accessibility.js';
import { Visit } from './visit.js';

let node: TestNode;
let isBroken = true;

const fine = task('fine', () => 'done');
const shaky = task('shaky', { retry: { maxAttempts: 1 } }, () => {
  if (isBroken) throw new Error('not today');
  return 'done';
});

beforeAll(async () => {
  node = await TestNode.start();
  await node.work([fine, shaky], { slots: 4 });
});
afterAll(() => node.stop());

const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });

it('a workflow is drawn with the states of its steps, and goes on from what failed', async () => {
  const many = Object.fromEntries(
    Array.from({ length: 40 }, (_, i) => [`page-${i}`, { task: 'fine', after: ['first'] }]),
  );
  const jobs = {
    first: { task: 'fine' },
    ...many,
    bad: { task: 'shaky' },
    last: { task: 'fine', after: ['bad'] },
  };
  const { id } = await node.get<Workflow>('POST', '/v1/workflows', { body: { name: 'publish', jobs } });
  const { page } = await Visit.begin(node, { path: '/workflows?state=failed' });
  await row(page, 'publish').getByText('43 of 43').waitFor();
  await expectAccessible(page);
  await row(page, 'publish').getByRole('link').click();
  const graph = page.getByRole('region', { name: 'Graph of 43 steps' });
  await graph.getByRole('link', { name: /^first: succeeded/ }).waitFor();
  await graph
    .locator('.graph-counts')
    .filter({ hasText: /^(39|40) succeeded$/ })
    .waitFor();
  await graph.getByRole('link', { name: /^bad: failed/ }).waitFor();
  await expectAccessible(page);

  await page.getByRole('tab', { name: 'Critical path' }).click();
  await page.getByText('in all').waitFor();
  await page.getByRole('tab', { name: 'List' }).click();
  expect(await page.getByRole('table', { name: 'Steps' }).getByRole('row').nth(1).textContent()).toContain(
    'bad',
  );
  await expectAccessible(page);

  isBroken = false;
  await page.getByRole('button', { name: 'Retry from failed' }).click();
  await page.getByText('What failed runs again').waitFor();
  await expect
    .poll(async () => (await node.get<Workflow>('GET', `/v1/workflows/${id}`)).state)
    .toBe('succeeded');
  await row(page, 'bad').getByText('succeeded', { exact: true }).waitFor();
  isBroken = true;
});

it('a running workflow is held, taken back and cancelled', async () => {
  const jobs = { paid: { wait: { event: 'paid', timeout: '2d' } }, ship: { task: 'fine', after: ['paid'] } };
  const { id } = await node.get<Workflow>('POST', '/v1/workflows', { body: { name: 'order', jobs } });
  const state = async () => {
    const { held, state } = await node.get<Workflow>('GET', `/v1/workflows/${id}`);
    return held ? 'held' : state;
  };
  const { page } = await Visit.begin(node, { path: `/workflows/${id}` });
  await page.getByRole('button', { name: 'Hold' }).click();
  await expect.poll(state).toBe('held');
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect.poll(state).toBe('running');
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel it' }).click();
  await expect.poll(state).toBe('cancelled');
});

it('a batch that waits says for what, and is cancelled', async () => {
  const member = { task: 'fine', requires: { gpu: 'yes' } };
  const { id } = await node.get<Batch>('POST', '/v1/batches', { body: { jobs: [member, member] } });
  const { page } = await Visit.begin(node, { path: '/batches' });
  await row(page, id).getByText('pending').waitFor();
  await expectAccessible(page);
  await row(page, id).getByRole('link').click();
  await page
    .getByRole('status')
    .filter({ hasText: /worker/ })
    .waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Cancel', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel it' }).click();
  await expect.poll(async () => (await node.get<Batch>('GET', `/v1/batches/${id}`)).state).toBe('cancelled');
});

it('a schedule is made with a preview, paused, run by hand, and shows its ledger', async () => {
  const visit = await Visit.begin(node, { path: '/schedules/new' });
  visit.expects(/status of 422/);
  const { page } = visit;
  await page.getByLabel('Time zone').fill('Europe/Berlin');
  await page.getByLabel('Expression').fill('30 2 * * *');
  await page.getByText('At 02:30').waitFor();
  const next = page.getByRole('list', { name: 'Next occurrences' });
  await expect.poll(() => next.getByRole('listitem').count()).toBe(10);
  await page.getByLabel('Expression').fill('99 2 * * *');
  await page.getByRole('status').filter({ hasText: '99' }).waitFor();
  await page.getByLabel('Expression').fill('30 2 * * *');
  await page.getByLabel('Name').fill('nightly');
  await page.getByLabel('Task').fill('fine');
  await page.getByLabel('Payload').fill('{"id":4242}');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('region', { name: 'Payload' }).getByText('4242').waitFor();

  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('None while it is paused.').waitFor();
  await page.getByRole('button', { name: 'Undo' }).click();
  await next.waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Run now' }).click();
  await page.waitForURL(/\/jobs\//);

  await node.get('POST', '/v1/schedules', { body: { name: 'often', task: 'fine', every: '1s' } });
  await page.goto(`${visit.root}/schedules`);
  await row(page, 'nightly').getByText('30 2 * * * (Europe/Berlin)').waitFor();
  await expectAccessible(page);
  await row(page, 'often').getByRole('link').first().click();
  await page.getByRole('table', { name: 'Ledger' }).getByText('ran').first().waitFor();
  await page
    .getByRole('list', { name: /newest occurrences/ })
    .getByRole('listitem')
    .first()
    .waitFor();
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: 'Schedules', exact: true }).waitFor();
});
