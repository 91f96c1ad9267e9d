import { readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, onTestFinished } from 'vitest';
import type { Session } from '../../src/core/session.js';
import type { EventRecorder } from '../../src/dispatch/event-recorder.js';
import { createOperatorKey } from '../../src/store/operator-key.js';
import { createTestDatabase } from '../database.js';
import { TestNode } from '../node-for-tests.js';
import { PunctualProcess } from '../punctual-process.js';
import { temporaryFolder } from '../temporary-folder.js';
import { NodeProxy } from './node-proxy.js';
import { Visit } from './visit.js';

let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

/** How long a page is watched that nobody touches. */
const IDLE_MS = 15_000;
/** What has just begun or been shown is complete after a moment, and compiled. */
const SETTLED_MS = 5_000;

const streamsOf = ({ requests }: Visit) => requests.filter((each) => each.includes('/v1/events')).length;

it('a lost connection is shown, and the page goes on where it was when it is back', async () => {
  const proxy = await NodeProxy.start(node.url);
  const visit = await Visit.begin(node, { url: proxy.url });
  visit.expects(/^Failed to load resource: net::ERR_/);
  const { page } = visit;
  await page.getByText('Live', { exact: true }).waitFor();
  await node.submit({ task: 'nobody', queue: 'before' });
  await page.getByRole('link', { name: 'before' }).first().waitFor();
  proxy.cut();
  await page.getByText('Connection lost; trying again …').waitFor();
  await node.submit({ task: 'nobody', queue: 'meanwhile' });
  proxy.mend();
  await page.getByText('Live', { exact: true }).waitFor();
  await page.getByRole('link', { name: 'meanwhile' }).first().waitFor();
  const resumed = proxy.requests.filter(
    ({ url, headers }) => url.includes('/v1/events') && headers['last-event-id'],
  );
  expect(resumed.length).toBeGreaterThan(0);
});

it('all tabs of a browser share one stream, and another tab takes it over', async () => {
  const visit = await Visit.begin(node);
  await visit.page.getByText('Live', { exact: true }).waitFor();
  const [second, third] = [await visit.tab(), await visit.tab()];
  for (const page of [second, third]) await page.getByText('Live', { exact: true }).waitFor();
  await node.submit({ task: 'nobody', queue: 'told-to-all' });
  // What is hidden is not read; a tab reads when it is seen.
  for (const page of [visit.page, second, third]) {
    await page.bringToFront();
    await page.getByRole('link', { name: 'told-to-all' }).first().waitFor();
  }
  expect(streamsOf(visit)).toBe(1);
  await visit.page.close();
  await expect.poll(() => streamsOf(visit)).toBe(2);
  await node.submit({ task: 'nobody', queue: 'told-by-another' });
  await third.getByRole('link', { name: 'told-by-another' }).first().waitFor();
});

it('ten thousand changes a second leave the page quick, and cost it little to hear', async () => {
  const visit = await Visit.begin(node);
  const { page } = visit;
  await page.getByText('Live', { exact: true }).waitFor();
  const recorder = node.node.context.shards[0].currentLeader()!.events as EventRecorder;
  const ended = (i: number) => ({
    ...{ id: `0198c0de-0000-7000-8000-${String(i).padStart(12, '0')}`, tenant: 'default' },
    ...{ state: 'succeeded' as const, task: 'many', queueName: 'mail' },
  });
  await page.evaluate(`
    window.longest = 0;
    new PerformanceObserver((list) => {
      for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
    }).observe({ type: 'longtask' });`);
  const asked = visit.requests.length;
  let told = 0;
  const begin = performance.now();
  for (let tick = 1; tick <= 150; tick++) {
    recorder.endedWaiting(Array.from({ length: 200 }, (_, i) => ended(told + i)));
    told += 200;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, begin + tick * 20 - performance.now())));
    if (tick !== 75) continue;
    // In the middle of it, the page does what it is told.
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Search or go to' }).fill('clus');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Cluster', level: 1 }).waitFor();
  }
  expect(told).toBe(30_000);
  expect(await page.evaluate<number>('window.longest')).toBeLessThan(250);
  // It reads again at its own pace, whatever happens.
  expect(visit.requests.length - asked).toBeLessThan(60);
  await page.getByText('Live', { exact: true }).waitFor();
});

it('a leader that is killed is followed by another one on the page within two seconds, without loading it again', async () => {
  const { key, startServer } = await serversOfTheirOwn();
  const leader = await startServer();
  const follower = await startServer();
  const visit = await Visit.begin(node, { key: null, url: follower.url });
  visit.expects(/status of 503/);
  const { page } = visit;
  await page.getByLabel('Key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
  const tile = page.locator('.tile', { hasText: 'Leader' });
  const [first, next] = await Promise.all([leader, follower].map(({ url }) => nodeAt(url, key)));
  await tile.getByText(first!).waitFor();
  await page.evaluate('window.isSamePage = true');
  const begin = performance.now();
  await leader.server.kill('SIGKILL');
  await tile.getByText(next!).waitFor();
  expect(performance.now() - begin).toBeLessThan(2_000);
  expect(await page.evaluate('window.isSamePage')).toBe(true);
});

/** A database of its own, for servers that are processes of their own. */
async function serversOfTheirOwn() {
  const [database, folder] = await Promise.all([createTestDatabase(), temporaryFolder()]);
  onTestFinished(async () => {
    await database.drop();
    await rm(folder, { recursive: true });
  }, 30_000);
  const { key } = await createOperatorKey(database.url, 'tester');
  const startServer = async () => {
    const environment = { PUNCTUAL_DATABASE_URL: database.url };
    const server = new PunctualProcess(['server', '--port', '0'], { folder, environment });
    onTestFinished(async () => void (await server.kill('SIGKILL')), 30_000);
    const [, url] = await server.prints('stdout', /^ready (\S+)\n/m);
    return { server, url: url! };
  };
  return { key, startServer };
}

it.runIf(process.platform === 'linux')(
  'a page that is left open costs its node less than a hundredth of a processor',
  async () => {
    const { key, startServer } = await serversOfTheirOwn();
    const { server, url } = await startServer();
    const spent = async () => {
      const before = cpuMsOf(server.child.pid!);
      await pause(IDLE_MS);
      return cpuMsOf(server.child.pid!) - before;
    };
    await pause(SETTLED_MS);
    const without = await spent();
    const { page } = await Visit.begin(node, { key: null, url });
    await page.getByLabel('Key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('region', { name: 'Throughput' }).locator('canvas').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await pause(SETTLED_MS);
    // The least of several times: now and then a node has something of its own to do.
    const costs: number[] = [];
    while (costs.length < 3 && !(Math.min(...costs) < IDLE_MS / 100)) costs.push((await spent()) - without);
    console.log(`a page that is left open costs ${costs.join(', ')} ms of ${IDLE_MS} ms`);
    expect(Math.min(...costs)).toBeLessThan(IDLE_MS / 100);
  },
  120_000,
);

/** The processor time that a process has used; it is counted in hundredths of a second. */
function cpuMsOf(pid: number): number {
  // The name of the program, in brackets, may hold spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)!;
  const [user, system] = fields.split(' ').slice(11, 13).map(Number);
  return (user! + system!) * 10;
}

/** The id of the node at an address. */
async function nodeAt(url: string, key: string): Promise<string> {
  const answer = await fetch(`${url}/v1/session`, { headers: { authorization: `Bearer ${key}` } });
  return ((await answer.json()) as Session).node;
}
