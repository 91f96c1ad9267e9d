import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';

import type { Batch } from '../../src/core/batch.js';
import { PermanentError, task } from '../../src/core/task.js';
import type { WorkerView } from '../../src/core/wire.js';
import type { Workflow } from '../../src/core/workflow.js';
import { push } from '../integration/artifacts/artifact-for-tests.js';
import { TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { expectAccessible } from './accessibility.js';
import { SCREENS } from './screens.js';
import { Visit } from './visit.js';

/**
 * What holds for every screen, whoever wrote what is on it: it is text, it can be read by everybody in both themes, and it fits a
 * phone. A new screen is part of this by being in the list of screens.
 */

/** Stands in every name and text that others write, and is replaced by a script in all that the page reads. */
const PLANT = 'PLANTED';
const SCRIPT = '<script>window.planted = 1</script><img src="x" onerror="window.planted = 1">';
const PHONE = { width: 360, height: 740 };
const DESK = { width: 1_280, height: 800 };

let node: TestNode;
/** Where each screen is that belongs to something. */
const paths: Record<string, string> = {};

const fail = task(`${PLANT}-task`, { retry: { maxAttempts: 1 } }, (_: unknown, ctx) => {
  ctx.log.info(PLANT);
  throw new PermanentError(PLANT, { code: PLANT, cause: new Error(PLANT) });
});

beforeAll(async () => {
  node = await TestNode.start({
    settings: { secretKey: Buffer.alloc(32, 7).toString('base64'), unservedAfter: '100ms' },
  });
  const queue = `${PLANT}-queue`;
  await node.work([fail], { queues: [queue] });
  await ProtocolWorker.register(node, { name: PLANT, labels: { [PLANT]: PLANT } });
  const common = { task: fail.name, queue, payload: { [PLANT]: PLANT } };
  const { id } = await node.submit({ ...common, key: PLANT, concurrencyKey: PLANT });
  await node.ended(id);
  await node.submit({ ...common, requires: { [PLANT]: PLANT } });
  const jobs = { [PLANT]: common, [`${PLANT}-2`]: { ...common, after: [PLANT], runIf: 'all-finished' } };
  const workflow = await node.get<Workflow>('POST', '/v1/workflows', { body: { name: PLANT, jobs } });
  const batch = await node.get<Batch>('POST', '/v1/batches', {
    body: { jobs: [{ ...common, requires: { [PLANT]: PLANT } }, common] },
  });
  await node.get('POST', '/v1/schedules', {
    body: { name: PLANT, ...common, cron: '30 2 * * *', timezone: 'Europe/Berlin' },
  });
  await node.get('POST', '/v1/tenants', { body: { id: PLANT, name: PLANT } });
  await node.get('POST', '/v1/keys', { body: { name: PLANT, scopes: ['read'], queues: [queue] } });
  await node.get('PUT', `/v1/secrets/${PLANT}`, { body: { value: 'v', origins: ['https://example.com'] } });
  await node.get('PUT', '/v1/origins', { body: { origin: 'https://example.com', concurrency: 3 } });
  const artifact = await push(node, Buffer.from(PLANT), { name: PLANT, version: '1', runnable: false });
  const { data: workers } = await node.get<{ data: WorkerView[] }>('GET', '/v1/workers');
  Object.assign(paths, {
    '/jobs/:id': `/jobs/${id}`,
    '/workflows/:id': `/workflows/${workflow.id}`,
    '/batches/:id': `/batches/${batch.id}`,
    '/schedules/:name': `/schedules/${PLANT}`,
    '/schedules/:name/edit': `/schedules/${PLANT}/edit`,
    '/artifacts/:id': `/artifacts/${artifact.id}`,
    '/queues/:name': `/queues/${queue}`,
    '/workers/:id': `/workers/${workers.find(({ name }) => name === PLANT)!.id}`,
  });
});
afterAll(() => node.stop());

/** Those that show nothing that a tenant has written. */
const WITHOUT_PLANT = ['/schedules/new', '/cluster', '/origins', '/submit'];

/** Has the page read a script wherever something was planted; the API itself refuses some of these names. */
async function plant(page: Page): Promise<void> {
  const json = JSON.stringify(SCRIPT).slice(1, -1);
  await page.route(/\/v1\/(?!events|session)/, async (route) => {
    const answer = await route.fetch();
    const text = (await answer.text()).replaceAll(PLANT, json);
    await route.fulfill({ response: answer, body: text });
  });
}

/** Waits until everything on the screen has been read. */
async function isRead(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await expect.poll(() => page.locator('.placeholder, [aria-busy=true], .table-wait').count()).toBe(0);
}

it.each(SCREENS.map(({ path, title }) => ({ path, title })))(
  '$title ($path) shows what others wrote as text, to everybody, and on a phone',
  async ({ path }) => {
    const visit = await Visit.begin(node, { path: '/submit' });
    // The page asks about what was planted by its name, which the API refuses.
    visit.expects(/status of (404|422)/);
    const { page, root } = visit;
    await plant(page);
    await page.goto(root + (paths[path] ?? path));
    await isRead(page);
    const isPlanted = !WITHOUT_PLANT.includes(path);
    if (isPlanted)
      await page.getByText('window.planted').first().waitFor({ state: 'attached', timeout: 10_000 });
    const found = 'window.planted || document.querySelectorAll("main img, main script").length';
    expect(await page.evaluate(found)).toBe(0);
    await expectAccessible(page);
    await page.setViewportSize(PHONE);
    await isRead(page);
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
    await expectAccessible(page);
    await page.setViewportSize(DESK);
    expect(await page.evaluate(found)).toBe(0);
  },
);

it('the API takes no markup for the names of tasks and queues', async () => {
  for (const body of [{ task: SCRIPT }, { task: 'x', queue: SCRIPT }])
    expect((await node.ask('POST', '/v1/jobs', { body })).status).toBe(422);
});

it.each(['graph', 'gantt', 'list', 'path'])('the %s of a workflow, too', async (tab) => {
  const { page, root } = await Visit.begin(node, { path: '/submit' });
  await plant(page);
  await page.goto(`${root}${paths['/workflows/:id']}?tab=${tab}`);
  await isRead(page);
  await page.getByRole('tabpanel').getByText('<script>').first().waitFor({ state: 'attached' });
  expect(await page.evaluate('[window.planted]')).toEqual([undefined]);
  await expectAccessible(page);
  await page.setViewportSize(PHONE);
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(PHONE.width);
});
