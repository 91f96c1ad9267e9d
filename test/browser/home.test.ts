import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { task } from '../../src/core/task.js';
import { Door } from '../happening.js';
import { TestNode } from '../node-for-tests.js';
import { expectAccessible } from './accessibility.js';
import { NodeProxy } from './node-proxy.js';
import { Visit } from './visit.js';

let node: TestNode;
const door = new Door();

beforeAll(async () => {
  node = await TestNode.start({ settings: { unservedAfter: '100ms' } });
  const wait = task('wait', {}, () => door.opened);
  await node.work([wait], { queues: ['mail'], slots: 2, tenant: 'default' });
  const at = new Date(Date.now() + 30 * 60_000).toISOString();
  for (let i = 0; i < 5; i++) await node.submit({ task: 'wait', queue: 'mail' });
  await node.get('POST', '/v1/jobs/bulk', {
    body: { jobs: Array.from({ length: 40 }, () => ({ task: 'wait', queue: 'mail', runAt: at })) },
  });
  await node.submit({ task: 'nobody-has-it', queue: 'orphans' });
  await node.submit({ task: 'wait', hold: true });
  const jobs = { first: { task: 'wait', hold: true }, second: { task: 'wait', after: ['first'] } };
  await node.get('POST', '/v1/workflows', { body: { name: 'held', jobs } });
  await node.get('POST', '/v1/schedules', { body: { name: 'nightly', task: 'wait', cron: '0 3 * * *' } });
});
afterAll(async () => {
  door.open();
  await node.stop();
});

it('Home shows what runs, what waits and why, what comes, and who leads', async () => {
  const { page } = await Visit.begin(node, { size: { width: 1_280, height: 1_400 } });
  const tile = (name: string) =>
    page.getByRole('region', { name: 'Counts' }).locator('.tile', { hasText: name });
  await expect.poll(() => tile('Running').textContent()).toContain('2');
  await expect.poll(() => tile('Ready').first().textContent()).toContain('4');
  await expect.poll(() => tile('Due later').textContent()).toContain('400 within minutes');
  await expect.poll(() => tile('Workers alive').textContent()).toContain('2 of 2 slots busy');
  await expect
    .poll(() => tile('Leader').textContent())
    .toMatch(new RegExp(`${node.node.id}.*epoch 1 · 1 node alive`));
  const waiting = page.getByRole('region', { name: 'Why are they waiting' });
  await expect.poll(() => waiting.textContent()).toMatch(/All slots are busy3.*mail 3/);
  await expect.poll(() => waiting.textContent()).toMatch(/No worker can run them1.*orphans 1/);
  await expect.poll(() => waiting.textContent()).toMatch(/On hold2/);
  expect(await waiting.textContent()).toMatch(/Steps and batches that wait for others1/);
  expect(await waiting.textContent()).toMatch(/Not due for long40/);
  const queues = page.getByRole('region', { name: 'Queues' });
  expect(await queues.getByRole('row', { name: /^mail/ }).textContent()).toMatch(/^mail 23/);
  expect(await page.getByRole('region', { name: 'Next fires' }).textContent()).toContain('nightly');
  const ahead = page.getByRole('region', { name: 'Load ahead' });
  expect(await ahead.textContent()).toMatch(/4\d due in the next hour.*1 herd: \d\d:\d\d \(40\)/);
  await page.getByRole('region', { name: 'Throughput' }).locator('canvas').waitFor();
  await page.getByRole('button', { name: '6 hours' }).click();
  expect(page.url()).toContain('range=6h');
  await page.getByRole('button', { name: '6 hours', pressed: true }).waitFor();
  await expectAccessible(page);
});

/** The colour of most pixels of the text at the axes of a chart: what is neither its ground nor a line of its grid. */
const axisColour = `(() => {
  const canvas = document.querySelector('canvas');
  const { data } = canvas.getContext('2d').getImageData(0, 0, 40, canvas.height);
  let strongest = [0, 0, 0, 0];
  for (let i = 0; i < data.length; i += 4) if (data[i + 3] > strongest[3]) strongest = [...data.slice(i, i + 4)];
  return strongest.slice(0, 3).join();
})()`;

it('what is drawn on a canvas has the colours of the theme, also after it has changed', async () => {
  const { page } = await Visit.begin(node);
  await page.getByRole('region', { name: 'Throughput' }).locator('canvas').waitFor();
  const expected = () =>
    page.evaluate<string>(`(() => {
      const probe = document.createElement('i');
      probe.style.color = 'var(--chart-axis)';
      document.body.append(probe);
      const colour = getComputedStyle(probe).color.match(/\\d+/g).join();
      probe.remove();
      return colour;
    })()`);
  const light = await expected();
  await expect.poll(() => page.evaluate(axisColour)).toBe(light);
  await page.emulateMedia({ colorScheme: 'dark' });
  const dark = await expected();
  expect(dark).not.toBe(light);
  await expect.poll(() => page.evaluate(axisColour)).toBe(dark);
});

it('charts are drawn in a browser whose language is the locale of a system', async () => {
  const { context, page } = await Visit.begin(node, { path: '/jobs' });
  const session = await context.newCDPSession(page);
  const userAgent = await page.evaluate<string>('navigator.userAgent');
  await session.send('Emulation.setUserAgentOverride', { userAgent, acceptLanguage: 'en-US@posix' });
  await page.goto(`${node.url}/`);
  // The page changes nothing of the list.
  expect(await page.evaluate<string>('navigator.languages[0]')).toBe('en-US@posix');
  for (const name of ['Throughput', 'Start delay', 'Load ahead'])
    await page.getByRole('region', { name }).locator('canvas').waitFor();
});

it('the page fits a phone: nothing is wider than it, and the navigation opens', async () => {
  const { page } = await Visit.begin(node, { size: { width: 360, height: 740 } });
  await page.getByRole('region', { name: 'Throughput' }).locator('canvas').waitFor();
  expect(await page.evaluate<number>('document.documentElement.scrollWidth')).toBe(360);
  await page.getByRole('button', { name: 'Navigation' }).click();
  await page.getByRole('link', { name: 'Cluster' }).click();
  await page.getByRole('heading', { name: 'Cluster', level: 1 }).waitFor();
  await expect.poll(() => page.getByRole('link', { name: 'Cluster' }).isVisible()).toBe(false);
  await expect.poll(() => page.evaluate<number>('document.documentElement.scrollWidth')).toBe(360);
});

it('the page works below any path, and its links stay there', async () => {
  const proxy = await NodeProxy.start(node.url, '/ops/punctual');
  const { page } = await Visit.begin(node, { url: proxy.url, path: '/cluster' });
  await page.getByRole('heading', { name: 'Cluster', level: 1 }).waitFor();
  await page.getByRole('link', { name: 'Home' }).click();
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  expect(page.url()).toBe(`${proxy.url}/`);
  await page.getByRole('link', { name: 'mail' }).first().click();
  expect(page.url()).toBe(`${proxy.url}/queues/mail`);
  await page.reload();
  await page.getByRole('link', { name: 'Jobs', exact: true }).click();
  await page.goBack();
  expect(page.url()).toBe(`${proxy.url}/queues/mail`);
  expect(proxy.requests.filter(({ url }) => !url.startsWith('/ops/punctual/'))).toEqual([]);
});

it('the first paint comes within a second', async () => {
  const { page } = await Visit.begin(node);
  await page.getByRole('region', { name: 'Throughput' }).locator('canvas').waitFor();
  const painted = async () => {
    await page.reload();
    await page.getByRole('navigation', { name: 'Screens' }).waitFor();
    // The browser tells of it when the frame is out.
    const entry = "performance.getEntriesByName('first-contentful-paint')[0]";
    await expect.poll(() => page.evaluate<boolean>(`${entry} !== undefined`)).toBe(true);
    return page.evaluate<number>(`${entry}.startTime`);
  };
  const times = [await painted(), await painted(), await painted()];
  expect(Math.min(...times)).toBeLessThan(1_000);
});

it('a page that is left open asks for little', async () => {
  const visit = await Visit.begin(node);
  await visit.page.getByRole('region', { name: 'Throughput' }).locator('canvas').waitFor();
  // What has just been shown is complete after a moment.
  await pause(2_000);
  const before = visit.requests.length;
  await pause(5_000);
  const asked = visit.requests.slice(before);
  expect(asked.length, asked.join('\n')).toBeLessThanOrEqual(4);
});
