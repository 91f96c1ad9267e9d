import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Batch } from '../../src/core/batch.js';
import { task } from '../../src/core/task.js';
import type { ScheduleView } from '../../src/core/wire.js';
import type { Workflow } from '../../src/core/workflow.js';
import { Door } from '../happening.js';
import { push } from '../integration/artifacts/artifact-for-tests.js';
import { TestNode } from '../node-for-tests.js';
import { handMadeElf } from '../programs/hand-made-elf.js';
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
  await page.getByLabel('Time zone').pressSequentially('x', { delay: 10 });
  await page
    .getByRole('status')
    .filter({ hasText: /time zone/ })
    .waitFor();
  await page.getByLabel('Time zone').fill('Europe/Berlin');
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

  await node.get('PATCH', '/v1/schedules/nightly', { body: { lateAfter: '1m', overlap: 'skip' } });
  await page.goto(`${visit.root}/schedules/nightly`);
  await page.getByRole('link', { name: 'Edit', exact: true }).click();
  const change = page.getByRole('button', { name: 'Change it' });
  expect(await change.isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Again and again' }).click();
  await page.getByLabel('Every').fill('2h');
  await page.getByLabel('Payload').fill('{"id": 4343}');
  await page.getByText('Overlap, downtime').click();
  await page.getByLabel('Queue').fill('nights');
  await page.getByLabel('If the one before still runs').selectOption('');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Copy as a command' }).click();
  expect(await page.locator('.menu:popover-open .menu-item').last().getAttribute('title')).toBe(
    `punctual schedule change nightly --payload '{"id": 4343}' --every 2h --queue nights --unset timezone --unset overlap`,
  );
  await page.keyboard.press('Escape');
  await change.click();
  await page.getByRole('region', { name: 'Payload' }).getByText('4343').waitFor();
  await expect.poll(() => next.getByRole('listitem').count()).toBe(10);
  expect(await node.get<ScheduleView>('GET', '/v1/schedules/nightly')).toMatchObject({
    ...{ every: '2h', queue: 'nights', overlap: 'allow', lateAfter: '1m', task: 'fine' },
  });

  await node.get('POST', '/v1/schedules', { body: { name: 'often', task: 'fine', every: '1s' } });
  await page.goto(`${visit.root}/schedules`);
  await row(page, 'nightly').getByText('every 2h').waitFor();
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

it('a schedule starts workflows or batches, and forms say what is wrong before they are sent', async () => {
  const jobs = { one: { task: 'fine' } };
  await node.get('PUT', '/v1/workflow-definitions/import', { body: { jobs } });
  const { page } = await Visit.begin(node, { path: '/schedules/new' });
  await page.getByLabel('Name').fill('imports');
  await page.getByRole('button', { name: 'A workflow' }).click();
  await page.getByLabel('Workflow').fill('import');
  expect(await page.locator('#schedule-workflows option').first().getAttribute('value')).toBe('import');
  await page.getByLabel('Input').fill('{"day":');
  await page.getByText('This is not JSON').waitFor();
  expect(await page.getByRole('button', { name: 'Create' }).isDisabled()).toBe(true);
  await page.getByLabel('Input').fill('{"day": 1}');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'imports', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'Run now' }).click();
  await page.waitForURL(/\/workflows\//);

  await page.goto(`${node.url}/schedules/new`);
  await page.getByLabel('Name').fill('together');
  await page.getByRole('button', { name: 'A batch' }).click();
  await page.getByLabel('Batch').fill('{"jobs": [{"task": "fine"}, {"task": "fine"}]}');
  await page.getByRole('button', { name: 'Once' }).click();
  await page.getByLabel('At', { exact: true }).fill('2037-01-01T00:00');
  await page.getByRole('list', { name: 'Next occurrences' }).getByRole('listitem').waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'together', level: 1 }).waitFor();
  const made = await node.get<ScheduleView>('GET', '/v1/schedules/together');
  expect(made.batch!.jobs).toHaveLength(2);
  await page.getByRole('button', { name: 'Run now' }).click();
  await page.waitForURL(/\/batches\//);
});

it('a schedule runs a program, which is changed in the form unless it says more than the form can show', async () => {
  const { page, root } = await Visit.begin(node, { path: '/schedules/new' });
  await page.getByLabel('Name').fill('packing');
  await page.getByRole('button', { name: 'A program' }).click();
  await page.getByLabel('Artifact').fill('packer');
  await page.getByLabel('Arguments').fill('--all');
  await expectAccessible(page);
  // No command of the program makes such a schedule.
  await page.getByRole('button', { name: 'Copy as a command' }).click();
  expect(await page.locator('.menu:popover-open .menu-item').allTextContents()).toEqual(['Copy as curl']);
  await page.keyboard.press('Escape');
  await push(node, handMadeElf('x64', 0), { name: 'packer', version: '1' });
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('heading', { name: 'packing', level: 1 }).waitFor();
  await page.goto(`${root}/schedules/packing/edit`);
  await page.getByLabel('Arguments').fill('--some');
  await page.getByRole('button', { name: 'Change it' }).click();
  await page.getByRole('heading', { name: 'packing', level: 1 }).waitFor();
  const target = async () => (await node.get<ScheduleView>('GET', '/v1/schedules/packing')).target;
  await expect.poll(target).toEqual({ type: 'exec', artifact: 'packer', args: ['--some'] });

  const more = { type: 'exec', artifact: 'packer', limits: { memory: 67_108_864 } };
  await node.get('PATCH', '/v1/schedules/packing', { body: { target: more } });
  await page.goto(`${root}/schedules/packing/edit`);
  await page.getByText('It runs a program, with more than this form can show').waitFor();
  expect(await page.getByRole('button', { name: 'Change it' }).isDisabled()).toBe(true);
});
