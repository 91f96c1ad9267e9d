import { afterAll, beforeAll, expect, it } from 'vitest';
import type { EventRecorder } from '../../src/dispatch/event-recorder.js';
import { TestNode } from '../node-for-tests.js';
import { Visit } from './visit.js';

/** What happens at a bad moment: between a read and the stream, too often, or not as it should. */

let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

/** A promise, and what resolves it. */
function promiseToKeep(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve!: () => void;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

it('what happens after a page was read and before its stream is open is shown', async () => {
  const { id } = await node.submit({ task: 'letter', queue: 'mail' });
  const visit = await Visit.begin(node, { key: null });
  const { page } = visit;
  const { promise: isWanted, resolve: open } = promiseToKeep();
  await page.route('**/v1/events*', async (route) => {
    await isWanted;
    await route.continue();
  });
  await page.getByLabel('Key').fill(node.apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search or go to' }).fill(id.slice(0, 8));
  await page.getByRole('option', { name: id }).click();
  await page.getByRole('button', { name: 'Hold', exact: true }).waitFor();
  await node.get('POST', `/v1/jobs/${id}/cancel`);
  open();
  await page.getByRole('heading', { name: 'cancelled' }).waitFor();
});

it('lists are read again at a calm pace and where the reader is, however much happens', async () => {
  const steps = { a: { task: 'letter' } };
  for (let i = 0; i < 60; i++)
    await node.get('POST', '/v1/workflows', { body: { name: `flow-${i}`, jobs: steps } });
  const visit = await Visit.begin(node, { path: '/workflows' });
  const { page } = visit;
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByText('flow-59').waitFor();
  const scroller = page.locator('.table-scroller');
  await scroller.evaluate((box) => box.scrollTo(0, 100_000));
  await page.getByText('flow-0', { exact: true }).waitFor();
  const recorder = node.node.context.shards[0].currentLeader()!.events as EventRecorder;
  const flow = { id: '0198c0de-0000-7000-8000-000000000001', tenant: 'default' };
  const lists = () => visit.requests.filter((each) => each.startsWith('GET /v1/workflows?')).length;
  const before = lists();
  const begin = performance.now();
  for (let tick = 1; tick <= 40; tick++) {
    recorder.workflow('workflow.changed', flow, 'running');
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, begin + tick * 100 - performance.now())));
  }
  expect(lists() - before).toBeGreaterThan(0);
  expect(lists() - before).toBeLessThan(5);
  await page.getByText('flow-0', { exact: true }).waitFor();
  expect(await scroller.evaluate((box) => box.scrollTop)).toBeGreaterThan(0);
});

it('an answer that no node has given is told of, and a screen that fails leaves the others', async () => {
  const visit = await Visit.begin(node, { path: '/cluster' });
  visit.expects(/^TypeError: (undefined is not iterable|Cannot read properties)|status of 404/);
  const { page } = visit;
  await page.getByRole('heading', { name: 'Cluster', level: 1 }).waitFor();
  await page.route('**/v1/tasks?*', (route) =>
    route.fulfill({ status: 200, contentType: 'text/html', body: '<p>Welcome to the hotel</p>' }),
  );
  await page.route('**/v1/queues/broken', (route) =>
    route.fulfill({ status: 200, contentType: 'application/json', body: '{"createdAt":"never"}' }),
  );
  await page.route('**/v1/errors*', (route) =>
    route.fulfill({ status: 200, contentType: 'text/html', body: '<p>Welcome to the hotel</p>' }),
  );
  await page.keyboard.press('g');
  await page.keyboard.press('e');
  await page.getByRole('alert').getByText('The answer cannot be read').waitFor();
  await page.goto(`${node.url}/queues/broken`);
  await page.getByText('This screen has failed').waitFor();
  await page.getByRole('link', { name: 'Cluster' }).click();
  await page.getByRole('heading', { name: 'Cluster', level: 1 }).waitFor();
});

it('a job whose submission was not answered is submitted once, however often the button is pressed', async () => {
  const visit = await Visit.begin(node, { path: '/submit?task=letter&queue=once' });
  visit.expects(/net::ERR_FAILED/);
  const { page } = visit;
  let isLost = true;
  await page.route('**/v1/jobs', async (route) => {
    if (route.request().method() !== 'POST' || !isLost) return route.continue();
    isLost = false;
    await route.fetch();
    await route.abort();
  });
  await page.getByRole('button', { name: 'Submit the job' }).click();
  await page.getByText('whether this was done is not known').waitFor();
  await page.getByRole('button', { name: 'Submit the job' }).click();
  await page.getByRole('heading', { name: 'letter' }).waitFor();
  const { data } = await node.get<{ data: unknown[] }>('GET', '/v1/jobs?queue=once');
  expect(data).toHaveLength(1);
});

it('a command that is copied is one command, whatever stands in the address', async () => {
  const visit = await Visit.begin(node, { path: `/audit?subject=${encodeURIComponent('$(touch x); y')}` });
  visit.expects(/status of 422/);
  const { page } = visit;
  await page.getByRole('button', { name: 'Copy as a command' }).first().click();
  expect(await page.getByRole('button', { name: 'Copy as CLI' }).getAttribute('title')).toBe(
    "punctual audit list --subject '$(touch x); y'",
  );
  await page.goto(`${node.url}/queues/${encodeURIComponent('$(touch x)')}`);
  await page.getByRole('button', { name: 'Copy as a command' }).first().click();
  expect(await page.getByRole('button', { name: 'Copy as CLI' }).getAttribute('title')).toBe(
    "punctual queue get '$(touch x)'",
  );
});

it('a form for another job begins anew', async () => {
  const first = await node.submit({ task: 'first-task', queue: 'mail' });
  const second = await node.submit({ task: 'second-task', queue: 'mail' });
  const { page } = await Visit.begin(node, { path: `/submit?from=${first.id}` });
  await expect.poll(() => page.getByLabel('Task', { exact: true }).inputValue()).toBe('first-task');
  await page.evaluate(`history.pushState(null, '', 'submit?from=${second.id}')`);
  await page.evaluate("dispatchEvent(new PopStateEvent('popstate'))");
  await expect.poll(() => page.getByLabel('Task', { exact: true }).inputValue()).toBe('second-task');
});
