import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { NewKeyView } from '../../src/core/access.js';
import type { OriginView, QueueView, WorkerView } from '../../src/core/wire.js';
import { TestNode } from '../node-for-tests.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { expectAccessible } from './accessibility.js';
import { Visit } from './visit.js';

/** What the browser says about a form that the API refuses. */
const REFUSED = /status of 422/;

let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });
const queue = (name: string) => node.get<QueueView>('GET', `/v1/queues/${name}`);

it('queues are paused and taken back, limited, and opened with their history', async () => {
  await node.submit({ task: 'mail', queue: 'post' });
  await node.submit({ task: 'mail', queue: 'post' });
  const visit = await Visit.begin(node, { path: '/queues' });
  visit.expects(REFUSED);
  const { page } = visit;
  await row(page, 'post').getByRole('button', { name: 'Pause' }).click();
  await page.getByText('post is paused. What runs goes on.').waitFor();
  await row(page, 'post').getByText('paused').waitFor();
  expect(await queue('post')).toMatchObject({ paused: true, ready: 2 });
  await page.getByRole('button', { name: 'Undo' }).click();
  await expect.poll(async () => (await queue('post')).paused).toBe(false);

  await row(page, 'post').getByRole('button', { name: 'Limits' }).click();
  await page.getByLabel('Rate of starts').fill('many');
  await page.getByRole('button', { name: 'Set limits' }).click();
  await page.getByRole('alert').waitFor();
  expect((await queue('post')).rate).toBeNull();
  await page.getByLabel('Rate of starts').fill('100/1s');
  await page.getByLabel('Jobs at a time').fill('5');
  await page.getByRole('button', { name: 'Set limits' }).click();
  await row(page, 'post').getByText('5 at a time, 100/1s').waitFor();
  expect(await queue('post')).toMatchObject({ concurrency: 5, rate: { limit: 100, per: '1s' } });

  await expectAccessible(page);
  await row(page, 'post').getByRole('link').click();
  await page.getByRole('heading', { name: 'By the minute' }).waitFor();
  await page.getByRole('figure', { name: /^Attempts that ended, by the minute/ }).waitFor();
  await page.getByRole('button', { name: '6 h' }).click();
  expect(await page.getByRole('button', { name: '6 h' }).getAttribute('aria-pressed')).toBe('true');
  await expectAccessible(page);
});

it('a worker is seen with what it can run, and drained after a question', async () => {
  const worker = await ProtocolWorker.register(node, {
    name: 'mailer <b>one</b>',
    queues: ['post'],
    tasks: ['mail'],
    labels: { region: 'eu' },
  });
  const { page } = await Visit.begin(node, { path: '/workers' });
  await row(page, 'mailer <b>one</b>').getByText('0 of 10').waitFor();
  await expectAccessible(page);
  await row(page, 'mailer').getByRole('link').click();
  await page.getByText('region=eu').waitFor();
  await page.getByRole('button', { name: 'Drain', exact: true }).click();
  await page.getByRole('button', { name: 'Keep as it is' }).click();
  const state = async () => (await node.get<WorkerView>('GET', `/v1/workers/${worker.id}`)).state;
  expect(await state()).toBe('alive');
  await page.getByRole('button', { name: 'Drain', exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click();
  await expect.poll(state).toBe('draining');
  // A shared worker serves every tenant, and an operator sees it whichever is chosen.
  const shared = await ProtocolWorker.register(node, { name: 'for-all', shared: true });
  await page.getByRole('combobox', { name: 'Tenant' }).selectOption('Another …');
  await page.getByLabel('Name of the tenant').fill('nobody-yet');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Home' }).click();
  await page.locator('.tile', { hasText: 'Workers alive' }).getByText('1', { exact: true }).waitFor();
  await page.getByRole('navigation').getByRole('link', { name: 'Workers' }).click();
  await row(page, 'for-all').getByText('all tenants').waitFor();
  await page.getByRole('button', { name: 'Of nobody-yet' }).click();
  await expect.poll(() => row(page, 'for-all').count()).toBe(0);
  await page.goto(`${node.url}/workers/${shared.id}`);
  await page.getByRole('heading', { name: 'for-all' }).waitFor();
  await page.goto(`${node.url}/workers/${worker.id}`);
  await page.getByText('draining').waitFor();
  await expectAccessible(page);
});

it('an origin is limited, and shown as down until somebody has it called again', async () => {
  const origin = 'https://hooks.example.com';
  await node.get('PUT', '/v1/origins', { body: { origin, concurrency: 3 } });
  const { page } = await Visit.begin(node, { path: '/origins' });
  await row(page, origin).getByText('up', { exact: true }).waitFor();
  await row(page, origin).getByRole('button', { name: 'Limits' }).click();
  await page.getByLabel('Calls at a time').fill('7');
  await page.getByRole('button', { name: 'Set limits' }).click();
  await row(page, origin).getByRole('cell', { name: '7', exact: true }).waitFor();
  const found = await node.get<{ data: OriginView[] }>('GET', '/v1/origins');
  expect(found.data).toMatchObject([{ origin, concurrency: 7 }]);

  const worker = await ProtocolWorker.register(node, { name: 'caller', targets: ['http'], tasks: [] });
  await node.submit({ target: { type: 'http', url: `${origin}/hook` } });
  const { jobId, fence } = await worker.claimOne();
  const failed = { outcome: 'failed', error: { message: 'come back later' }, origin: { pauseMs: 600_000 } };
  await node.get('POST', `/v1/workers/${worker.id}/report`, {
    body: { results: [{ jobId, fence, ...failed }] },
  });
  await row(page, origin).getByText('paused').waitFor();
  await expect
    .poll(() =>
      row(page, origin)
        .getByRole('cell', { name: /^[\d.]+ m?s$/ })
        .count(),
    )
    .toBe(2);
  await expectAccessible(page);
  await row(page, origin).getByRole('button', { name: 'Call again' }).click();
  await row(page, origin).getByText('up', { exact: true }).waitFor();
});

it('a key that may only read sees everything and is offered nothing', async () => {
  const body = { name: 'looker', scopes: ['read'], tenant: 'default' };
  const { key } = await node.get<NewKeyView>('POST', '/v1/keys', { body });
  const { page } = await Visit.begin(node, { key, path: '/queues' });
  await row(page, 'post').waitFor();
  const verbs = /^(Pause|Resume|Limits|Drain|Call again|New|Rotate|Revoke|Delete)/;
  expect(await page.getByRole('button', { name: verbs }).count()).toBe(0);
  const screens = page.getByRole('navigation', { name: 'Screens' });
  expect(await screens.getByRole('link', { name: 'Keys' }).count()).toBe(0);
  await screens.getByRole('link', { name: 'Workers' }).click();
  await page.getByRole('heading', { name: 'Workers', exact: true }).waitFor();
  expect(await page.getByRole('button', { name: verbs }).count()).toBe(0);
});

it('at 360 pixels nothing is wider than the page', async () => {
  const { page, root } = await Visit.begin(node, { path: '/queues', size: { width: 360, height: 740 } });
  for (const path of ['/queues', '/queues/post', '/workers', '/origins', '/secrets', '/audit']) {
    await page.goto(root + path);
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await page.evaluate('document.documentElement.scrollWidth'), path).toBeLessThanOrEqual(360);
  }
});
