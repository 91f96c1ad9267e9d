import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { NewKeyView } from '../../src/core/access.js';
import { TestNode } from '../node-for-tests.js';
import { expectAccessible } from './accessibility.js';
import { signInCode, Visit } from './visit.js';

let node: TestNode;
const keys: Record<string, string> = {};

beforeAll(async () => {
  node = await TestNode.start();
  await node.get('POST', '/v1/tenants', { body: { id: 'globex', name: 'Globex' } });
  for (const tenant of ['acme', 'globex']) {
    const body = { name: `${tenant} reader`, tenant, scopes: ['read'] };
    keys[tenant] = (await node.get<NewKeyView>('POST', '/v1/keys', { body })).key;
    await node.submit({ task: `${tenant}-task`, queue: `${tenant}-queue`, hold: tenant === 'acme' }, tenant);
    await node.submit({ task: `${tenant}-task`, queue: `${tenant}-queue` }, tenant);
  }
});
afterAll(() => node.stop());

async function typeKey(page: Page, key: string): Promise<void> {
  await page.getByLabel('Key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

const home = (page: Page) => page.getByRole('heading', { name: 'Home' }).waitFor();

it('a key that is typed in signs in, and stands in no address and no storage of the page', async () => {
  const { page } = await Visit.begin(node, { key: null });
  await typeKey(page, 'pk_wrong');
  await page.getByRole('alert').getByText('The key is not valid').waitFor();
  await expectAccessible(page);
  await typeKey(page, node.apiKey);
  await home(page);
  const kept = await page.evaluate<string>(
    'JSON.stringify([location.href, { ...localStorage }, { ...sessionStorage }])',
  );
  expect(kept).not.toContain(node.apiKey);
  expect(await page.evaluate('document.cookie')).toBe('');
});

it('a link signs in once, and its code leaves the address at once', async () => {
  const code = await signInCode(node, node.apiKey);
  const first = await Visit.begin(node, { key: null });
  await first.page.goto(`${node.url}/jobs?state=failed#code=${code}`);
  await first.page.getByRole('heading', { name: 'Jobs' }).waitFor();
  expect(first.page.url()).toBe(`${node.url}/jobs?state=failed`);
  expect(await first.page.title()).toBe('Jobs · Punctual');
  const second = await Visit.begin(node, { key: null });
  await second.page.goto(`${node.url}/?again#code=${code}`);
  await second.page.getByText('The code was used, or is too old').waitFor();
  expect(second.page.url()).not.toContain('code');
});

it('signing out leads back to the beginning, and the way back shows nothing', async () => {
  const { page } = await Visit.begin(node);
  await home(page);
  await page.getByRole('button', { name: 'tester' }).click();
  await page.getByRole('button', { name: 'Sign out' }).click();
  await page.getByText('You are signed out.').waitFor();
  await page.goto(`${node.url}/jobs`);
  await page.getByLabel('Key').waitFor();
  expect(await page.getByRole('navigation').count()).toBe(0);
});

it('when the session ends, signing in again goes on where one was, and nothing on the page is lost', async () => {
  const { page, context } = await Visit.begin(node, { path: '/?range=6h' });
  await home(page);
  await page.evaluate("document.querySelector('h1').dataset.seen = 'before'");
  await context.clearCookies();
  // Something happens, so that the page asks.
  await node.submit({ task: 'news' });
  await page.getByText('Your session has ended').waitFor();
  expect(await page.evaluate("document.querySelector('.shell').inert")).toBe(true);
  await expectAccessible(page);
  await typeKey(page, node.apiKey);
  await expect.poll(() => page.getByText('Your session has ended').count()).toBe(0);
  expect(await page.evaluate("document.querySelector('h1').dataset.seen")).toBe('before');
  expect(page.url()).toContain('range=6h');
  await node.submit({ task: 'news' });
  await page.getByText('Live', { exact: true }).waitFor();
});

it('a key that is revoked ends its sessions, and the page says so by itself', async () => {
  const body = { name: 'short-lived', tenant: 'acme', scopes: ['read'] };
  const { id, key } = await node.get<NewKeyView>('POST', '/v1/keys', { body });
  const { page } = await Visit.begin(node, { key });
  await page.getByText('Live', { exact: true }).waitFor();
  await node.ask('DELETE', `/v1/keys/${id}`);
  await page.getByText('Your session has ended').waitFor();
  expect(await page.evaluate("document.querySelector('.shell').inert")).toBe(true);
});

it('whoever signs in after somebody else sees nothing of theirs', async () => {
  const { page, context } = await Visit.begin(node, { key: keys.acme! });
  await page.getByRole('link', { name: 'acme-queue' }).first().waitFor();
  await context.clearCookies();
  await node.submit({ task: 'acme-task', queue: 'acme-queue' }, 'acme');
  await page.getByText('Your session has ended').waitFor();
  await typeKey(page, keys.globex!);
  await page.getByRole('link', { name: 'globex-queue' }).first().waitFor();
  expect(await page.content()).not.toContain('acme');
});

it('a tenant sees its own and no word of another, and a key that may only read sees no way to change anything', async () => {
  const { page } = await Visit.begin(node, { key: keys.acme! });
  await page.getByRole('link', { name: 'acme-queue' }).first().waitFor();
  expect(await page.content()).not.toContain('globex');
  const shown = await page.getByRole('navigation').getByRole('link').allTextContents();
  expect(shown).toEqual(expect.arrayContaining(['Home', 'Jobs', 'Cluster', 'Tenants']));
  for (const name of ['Submit', 'Keys', 'Audit']) expect(shown).not.toContain(name);
  expect(await page.getByRole('combobox', { name: 'Tenant' }).count()).toBe(0);
  await page.goto(`${node.url}/keys`);
  await page.getByText('Your key may not see Keys').waitFor();
  await page.getByRole('link', { name: 'Cluster' }).click();
  await page.getByText('The cluster is well').waitFor();
  expect(await page.getByRole('button', { name: /pause|resume/i }).count()).toBe(0);
  expect(await page.getByRole('main').textContent()).not.toContain(node.node.id);
});

it('an operator chooses the tenant, and keeps the choice when the page is loaded again', async () => {
  const { page } = await Visit.begin(node);
  await page.getByRole('combobox', { name: 'Tenant' }).selectOption('globex');
  await page.getByRole('link', { name: 'globex-queue' }).first().waitFor();
  expect(await page.getByRole('main').textContent()).not.toContain('acme');
  await page.reload();
  await page.getByRole('link', { name: 'globex-queue' }).first().waitFor();
  // One that works may have been made by nobody.
  await page.getByRole('combobox', { name: 'Tenant' }).selectOption('Another …');
  await page.getByLabel('Name of the tenant').fill('acme');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'acme-queue' }).first().waitFor();
  expect(await page.getByRole('main').textContent()).not.toContain('globex');
});
