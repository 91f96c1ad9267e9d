import { afterAll, beforeAll, expect, it } from 'vitest';
import type { NewKeyView } from '../../src/core/access.js';
import { Door } from '../happening.js';
import { TestNode } from '../node-for-tests.js';
import { expectAccessible } from './accessibility.js';
import { signInCode, Visit } from './visit.js';

/** Pages on which it changes who looks, or at what, while something is open. */

let node: TestNode;
const keys: Record<string, string> = {};

beforeAll(async () => {
  node = await TestNode.start();
  for (const tenant of ['acme', 'globex']) {
    await node.get('POST', '/v1/tenants', { body: { id: tenant, name: tenant } });
    const body = { name: `${tenant} reader`, tenant, scopes: ['read'] };
    keys[tenant] = (await node.get<NewKeyView>('POST', '/v1/keys', { body })).key;
    await node.submit({ task: `${tenant}-task`, queue: `${tenant}-queue` }, tenant);
    await node.submit({ task: `${tenant}-task`, queue: 'mail' }, tenant);
  }
  await node.submit({ task: 'letter', queue: 'mail' });
});
afterAll(() => node.stop());

it('a session that ends while a window is open can be begun again, and the window keeps what was typed', async () => {
  const { page, context } = await Visit.begin(node, { path: '/queues/mail' });
  await page.getByRole('button', { name: 'Limits' }).click();
  await page.getByLabel('Weight').fill('7');
  await context.clearCookies();
  await page.getByRole('button', { name: 'Set limits' }).click();
  await page.getByText('Your session has ended').waitFor();
  await expectAccessible(page);
  // There is no way around it.
  await page.keyboard.press('Escape');
  await page.keyboard.press('Escape');
  await page.getByLabel('Key', { exact: true }).fill(node.apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click({ timeout: 5_000 });
  await expect.poll(() => page.getByText('Your session has ended').count()).toBe(0);
  expect(await page.getByLabel('Weight').inputValue()).toBe('7');
  await page.getByRole('button', { name: 'Set limits' }).click();
  await expect
    .poll(async () => (await node.get<{ weight: number }>('GET', '/v1/queues/mail')).weight)
    .toBe(7);
});

it('a request from before a sign-in says nothing about the session after it', async () => {
  const { page, context } = await Visit.begin(node, { path: '/queues/mail' });
  await page.getByRole('button', { name: 'Pause', exact: true }).waitFor();
  await context.clearCookies();
  const [refused, goOn] = [new Door(), new Door()];
  await page.route(
    '**/v1/queues/mail',
    async (route) => {
      const response = await route.fetch();
      refused.open();
      await goOn.opened;
      await route.fulfill({ response });
    },
    { times: 1 },
  );
  await refused.opened;
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByText('Your session has ended').waitFor();
  await page.getByLabel('Key', { exact: true }).fill(node.apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect.poll(() => page.getByText('Your session has ended').count()).toBe(0);
  const late = page.waitForResponse((response) => response.status() === 401);
  goOn.open();
  await late;
  await page.getByRole('button', { name: 'Limits' }).click();
  await page.getByLabel('Weight').fill('8');
  expect(await page.getByText('Your session has ended').count()).toBe(0);
});

it('keys of the page do nothing behind the sign-in', async () => {
  const { page, context } = await Visit.begin(node);
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await context.clearCookies();
  await node.submit({ task: 'news' });
  await page.getByText('Your session has ended').waitFor();
  await page.keyboard.press('Control+k');
  expect(await page.getByRole('combobox', { name: 'Search or go to' }).count()).toBe(0);
});

it('all tabs of a browser show who is signed in now, and sign out together', async () => {
  const visit = await Visit.begin(node, { key: keys.acme! });
  const { page } = visit;
  await page.getByRole('link', { name: 'acme-queue' }).first().waitFor();
  await page.goto(`${node.url}/jobs?task=acme-task`);
  await page.getByRole('button', { name: 'Views' }).click();
  await page.getByRole('button', { name: 'Keep this view' }).click();
  await page.getByLabel('Name').fill('of acme');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'Home' }).click();
  const second = await visit.tab(`/#code=${await signInCode(node, keys.globex!)}`);
  // Somebody else may have made the link.
  await second.getByRole('dialog').getByText('You are signed in with the key acme reader').waitFor();
  await expectAccessible(second);
  await second.getByRole('button', { name: 'Sign in by the link' }).click();
  await second.getByRole('link', { name: 'globex-queue' }).first().waitFor();
  await page.bringToFront();
  await page.getByRole('link', { name: 'globex-queue' }).first().waitFor();
  expect(await page.content()).not.toContain('acme');
  // What acme has kept in this browser is not for globex.
  await page.getByRole('link', { name: 'Jobs', exact: true }).first().click();
  await page.getByRole('button', { name: 'Views' }).click();
  await page.getByText('Running now').waitFor();
  expect(await page.getByText('of acme').count()).toBe(0);
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'globex reader' }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  for (const each of [page, second]) {
    await each.bringToFront();
    await each.getByText('You are signed out.').waitFor();
    expect(await each.content()).not.toContain('globex');
  }
});

it('what was done for one tenant cannot be taken back for another', async () => {
  const { page } = await Visit.begin(node, { path: '/queues/mail' });
  await page.getByRole('combobox', { name: 'Tenant' }).selectOption('acme');
  await page.getByRole('button', { name: 'Pause', exact: true }).click();
  await page.getByRole('button', { name: 'Undo' }).waitFor();
  await page.getByRole('combobox', { name: 'Tenant' }).selectOption('globex');
  await expect.poll(() => page.getByRole('button', { name: 'Undo' }).count(), { timeout: 5_000 }).toBe(0);
});
