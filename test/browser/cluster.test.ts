import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ClusterView } from '../../src/core/wire.js';
import { TestNode } from '../node-for-tests.js';
import { expectAccessible } from './accessibility.js';
import { Visit } from './visit.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const isPaused = async () => (await node.get<ClusterView>('GET', '/v1/cluster')).paused;

it('dispatch is paused after a question, and goes on with undo or the button', async () => {
  const { page, context } = await Visit.begin(node, { path: '/cluster' });
  await page.getByRole('row', { name: new RegExp(`${node.node.id} alive shard 0`) }).waitFor();
  await page.getByRole('button', { name: 'Pause dispatch' }).click();
  await page.getByRole('button', { name: 'Keep as it is' }).click();
  expect(await isPaused()).toBe(false);
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search or go to' }).fill('pause');
  await page.keyboard.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByText('Dispatch is paused: no job of any tenant starts.').waitFor();
  expect(await isPaused()).toBe(true);
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Undo' }).click();
  await page.getByRole('button', { name: 'Pause dispatch' }).waitFor();
  expect(await isPaused()).toBe(false);

  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const copied = async (what: string) => {
    await page.getByRole('button', { name: 'Copy as a command' }).click();
    await page.getByRole('button', { name: `Copy as ${what}` }).click();
    await page.getByText(`Copied as ${what}.`).first().waitFor();
    return page.evaluate<string>('navigator.clipboard.readText()');
  };
  expect(await copied('CLI')).toBe('punctual cluster pause');
  expect(await copied('curl')).toBe(
    `curl -sS -X POST ${node.url}/v1/cluster/pause -H "authorization: Bearer $PUNCTUAL_API_KEY"`,
  );
});

it('keys do what the list of shortcuts says', async () => {
  const { page } = await Visit.begin(node);
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await page.keyboard.press('?');
  const list = page.getByRole('dialog', { name: 'Keyboard shortcuts' });
  expect(await list.textContent()).toContain('Go to Cluster');
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('c');
  await page.getByRole('heading', { name: 'Cluster', level: 1 }).waitFor();
  await page.keyboard.press('/');
  await page.getByRole('combobox', { name: 'Search or go to' }).fill('se');
  // What begins with the letters comes before what merely has them.
  expect(await page.getByRole('dialog').getByRole('option').first().textContent()).toContain('Secrets');
  await page.getByRole('combobox', { name: 'Search or go to' }).fill('wrkr');
  await page.getByRole('option', { name: /Workers/ }).waitFor();
  await expectAccessible(page);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Workers', level: 1 }).waitFor();
  const job = await node.submit({ task: 'nobody' });
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search or go to' }).fill(job.id.slice(0, 18));
  await page.getByRole('option', { name: new RegExp(job.id) }).click();
  await expect.poll(() => page.url()).toBe(`${node.url}/jobs/${job.id}`);
  // Letters that are typed into a field are no commands.
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search or go to' }).pressSequentially('gc');
  await page.keyboard.press('Escape');
  expect(page.url()).toBe(`${node.url}/jobs/${job.id}`);
});
