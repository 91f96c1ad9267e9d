import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Batch } from '../../src/core/batch.js';
import { task } from '../../src/core/task.js';
import type { Workflow } from '../../src/core/workflow.js';
import { Door } from '../happening.js';
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

const tried = new Set<string>();
const shakyOnce = task('shaky-once', { retry: { backoff: { base: '40ms' } } }, (_: unknown, { jobId }) => {
  if (!tried.has(jobId) && tried.add(jobId)) throw new Error('the first time');
});
const doors: Door[] = [];
const slow = task('slow', async () => doors.at(-1)!.opened);

beforeAll(async () => {
  node = await TestNode.start();
  await node.work([fine, shaky, shakyOnce, slow], { slots: 4 });
});
afterAll(async () => {
  for (const door of doors) door.open();
  await node.stop();
});

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
  await row(page, 'bad').getByText('succeeded', { exact: true }).first().waitFor();
  isBroken = true;
});

it('a Gantt chart shows when each step waited and ran, those on the critical path marked', async () => {
  const door = new Door();
  doors.push(door);
  const jobs = {
    fetch: { task: 'fine' },
    flaky: { task: 'shaky-once', after: ['fetch'] },
    pause: { wait: '5ms', after: ['fetch'] },
    slow: { task: 'slow', after: ['flaky', 'pause'] },
    never: { task: 'fine', after: ['slow'] },
  };
  const { id } = await node.get<Workflow>('POST', '/v1/workflows', { body: { name: 'import', jobs } });
  const { page, requests } = await Visit.begin(node, { path: `/workflows/${id}` });
  await page.getByRole('link', { name: /^slow: running/ }).waitFor();
  expect(requests.filter((each) => each.includes('include=attempts'))).toEqual([]);
  await page.getByRole('tab', { name: 'Gantt' }).click();
  const chart = page.getByRole('table', { name: 'Gantt chart of the steps' });
  const bar = (name: string) => row(page, name).getByRole('img').getAttribute('aria-label');
  await chart.waitFor();
  expect(await bar('fetch')).toMatch(/^(waiting [\d.]+ m?s, )?succeeded /);
  expect(await bar('flaky')).toMatch(/failed .*, backoff .*, succeeded /);
  expect(await bar('pause')).toMatch(/^waiting [\d.]+ ms$/);
  await expect.poll(() => bar('slow')).toMatch(/running [1-9]/);
  expect(await bar('never')).toBe('not yet');
  // In the order in which they could run.
  const names = (await chart.locator('tbody').getByRole('link').allTextContents()).map((text) =>
    text.replace('critical: ', '').trim(),
  );
  expect(names[0]).toBe('fetch');
  expect(names.slice(-2)).toEqual(['slow', 'never']);
  const critical = await chart.getByRole('link', { name: /^critical: / }).allTextContents();
  expect(critical.map((text) => text.replace(/^.*critical: /, ''))).toEqual(['fetch', 'flaky', 'slow']);
  await expectAccessible(page);
  door.open();
  await row(page, 'never')
    .getByRole('img', { name: /succeeded/ })
    .waitFor();
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
});

it('a Gantt chart of ten thousand steps has few elements, and is scrolled to its end', async () => {
  const jobs: Record<string, object> = { first: { wait: '1h' } };
  for (let i = 1; i < 9_999; i++) jobs[`step-${i}`] = { task: 'fine', after: ['first'] };
  jobs.last = { task: 'fine', after: ['first'] };
  const { id } = await node.get<Workflow>('POST', '/v1/workflows', { body: { name: 'wide', jobs } });
  const { page } = await Visit.begin(node, { path: `/workflows/${id}?tab=gantt` });
  const chart = page.getByRole('table', { name: 'Gantt chart of the steps' });
  await row(page, 'first').waitFor({ timeout: 20_000 });
  expect(await chart.getAttribute('aria-rowcount')).toBe('10001');
  expect(await chart.getByRole('row').count()).toBeLessThan(120);
  await page.evaluate("document.querySelector('.table-scroller').scrollTop = 1e9");
  await chart.getByRole('link', { name: 'last' }).waitFor();
  expect(await chart.getByRole('row').count()).toBeLessThan(120);
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
