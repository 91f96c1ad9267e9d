import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { KeyView, NewKeyView } from '../../src/core/access.js';
import type { SecretView } from '../../src/core/secret.js';
import type { TenantView } from '../../src/core/wire.js';
import { TestNode } from '../node-for-tests.js';
import { expectAccessible } from './accessibility.js';
import { Visit } from './visit.js';

/** What the browser says about a form that the API refuses. */
const REFUSED = /status of 422/;

let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start({ settings: { secretKey: Buffer.alloc(32, 7).toString('base64') } });
});
afterAll(() => node.stop());

const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });

it('a tenant is made with quotas, changed, and looked at', async () => {
  const visit = await Visit.begin(node, { path: '/tenants' });
  visit.expects(REFUSED);
  const { page } = visit;
  await page.getByRole('button', { name: 'New tenant' }).click();
  await page.getByLabel('Id').fill('acme');
  await page.getByLabel('Live jobs').fill('-3');
  await page.getByRole('button', { name: 'Create' }).click();
  await page.getByRole('alert').waitFor();
  await page.getByLabel('Live jobs').fill('1000');
  await page.getByRole('button', { name: 'Create' }).click();
  await row(page, 'acme').getByText('Live jobs 1,000').waitFor();
  await page
    .getByRole('combobox', { name: 'Tenant' })
    .locator('option', { hasText: 'acme' })
    .waitFor({ state: 'attached' });
  await row(page, 'acme').getByRole('button', { name: 'Limits' }).click();
  await expectAccessible(page);
  await page.getByLabel('Weight').fill('3');
  await page.getByRole('button', { name: 'Set limits' }).click();
  const tenant = () => node.get<TenantView>('GET', '/v1/tenants/acme');
  await expect.poll(async () => (await tenant()).weight).toBe(3);
  expect((await tenant()).quotas).toMatchObject({ liveJobs: 1_000, schedules: null });

  await node.get('POST', '/v1/jobs', { tenant: 'acme', body: { task: 'x', queue: 'of-acme' } });
  await row(page, 'acme').getByRole('button', { name: 'Look at it' }).click();
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name: 'Queues' }).click();
  await row(page, 'of-acme').waitFor();
});

it('a key is made with the rights that were chosen, shown once, rotated and revoked', async () => {
  const { page } = await Visit.begin(node, { path: '/keys' });
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByLabel('Name').fill('shop <i>1</i>');
  await page.getByLabel('submit').check();
  await page.getByLabel('Only these queues').fill('mail, post');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'Create' }).click();
  const shown = page.getByRole('dialog').locator('code');
  const key = (await shown.textContent()) ?? '';
  expect((await node.ask('GET', '/v1/session', { key })).body).toMatchObject({
    scopes: ['read', 'submit'],
    queues: ['mail', 'post'],
  });
  await page.getByRole('button', { name: 'I have it' }).click();
  expect(await page.content()).not.toContain(key);

  await row(page, 'shop <i>1</i>').getByRole('button', { name: 'Rotate' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
  const next = (await shown.textContent()) ?? '';
  expect(next).not.toBe(key);
  await page.getByRole('button', { name: 'I have it' }).click();
  await expect.poll(() => row(page, 'shop').count()).toBe(2);

  const { data } = await node.get<{ data: KeyView[] }>('GET', '/v1/keys');
  const kept = data.filter(({ name }) => name.startsWith('shop')).length;
  await row(page, 'shop').first().getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await expect.poll(() => row(page, 'shop').count()).toBe(kept - 1);
  await expectAccessible(page);
});

it('a secret is set and changed, and its value is nowhere in the page or its commands', async () => {
  const { page } = await Visit.begin(node, { path: '/secrets' });
  await page.getByRole('button', { name: 'New secret' }).click();
  await page.getByLabel('Name').fill('stripe');
  await page.getByLabel('Value').fill('sk_live_4242');
  await page.getByLabel('Origins that it may go to').fill('https://api.example.com');
  await page.getByRole('button', { name: 'Copy as a command' }).last().click();
  expect(await page.content()).not.toContain('sk_live_4242');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Set', exact: true }).click();
  await row(page, 'stripe').getByText('https://api.example.com').waitFor();
  await row(page, 'stripe').getByRole('button', { name: 'New value' }).click();
  await page.getByLabel('Value').fill('sk_live_5353');
  await page.getByRole('button', { name: 'Set', exact: true }).click();
  const secrets = () => node.get<{ data: SecretView[] }>('GET', '/v1/secrets');
  await expect.poll(async () => (await secrets()).data).toMatchObject([{ name: 'stripe', version: 2 }]);
  expect(await page.content()).not.toContain('sk_live_5353');
  await expectAccessible(page);

  const signing = page.getByRole('region', { name: 'Signing secrets' });
  await signing.getByRole('button', { name: 'Rotate' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Rotate' }).click();
  expect(await page.getByRole('dialog').locator('code').textContent()).toMatch(/^whsec_/);
  await page.getByRole('button', { name: 'I have it' }).click();
  await signing.getByText('the newest').waitFor();

  await row(page, 'stripe').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: 'No secrets' }).waitFor();
  expect((await secrets()).data).toEqual([]);
});

it('the audit is narrowed by the address, and an entry shows what it changed', async () => {
  await node.get('PATCH', '/v1/queues/audited', { body: { weight: 4 } });
  await node.get('POST', '/v1/queues/audited/pause');
  const visit = await Visit.begin(node, { path: '/audit?subject=audited' });
  visit.expects(REFUSED);
  const { page } = visit;
  await row(page, 'queue.pause').waitFor();
  await row(page, 'queue.change').waitFor();
  await page.getByLabel('Action').fill('queue.change');
  await page.getByLabel('Action').press('Tab');
  await expect.poll(() => row(page, 'queue.pause').count()).toBe(0);
  expect(new URL(page.url()).searchParams.get('action')).toBe('queue.change');
  await expectAccessible(page);
  await page.getByRole('button', { name: 'queue.change' }).click();
  await page.getByRole('region', { name: 'After' }).getByText('weight').waitFor();
  await expectAccessible(page);
  await page.keyboard.press('Escape');
  await page.getByLabel('Action').fill('no.such');
  await page.getByLabel('Action').press('Tab');
  await page.getByRole('alert').first().waitFor();
});

it('an operator sees the keys and the audit of all tenants and of none, or of one; an admin of a tenant its own', async () => {
  const make = (body: object) => node.get<NewKeyView>('POST', '/v1/keys', { body });
  await node.get('POST', '/v1/tenants', { body: { id: 'globex' } });
  await make({ name: 'of-globex', tenant: 'globex', scopes: ['read'] });
  await make({ name: 'of-initech', tenant: 'initech', scopes: ['read'] });
  const { key } = await make({ name: 'boss-of-globex', tenant: 'globex', scopes: ['read', 'admin'] });
  await node.get('POST', '/v1/cluster/pause');
  await node.get('POST', '/v1/cluster/resume');
  await node.submit({ task: 'x', queue: 'globex-queue' }, 'globex');
  await node.get('POST', '/v1/queues/globex-queue/pause', { tenant: 'globex' });
  await node.get('PUT', '/v1/secrets/of-globex', {
    ...{ tenant: 'globex', body: { value: 'v', origins: ['https://globex.example'] } },
  });

  const { page } = await Visit.begin(node, { path: '/keys' });
  for (const name of ['tester', 'of-globex', 'of-initech']) await row(page, name).first().waitFor();
  const copied = async () => {
    await page.getByRole('button', { name: 'Copy as a command' }).first().click();
    const texts = page.locator('.menu:popover-open .menu-item');
    const commands = [await texts.first().getAttribute('title'), await texts.last().getAttribute('title')];
    await page.keyboard.press('Escape');
    return commands;
  };
  expect(await copied()).toEqual([expect.not.stringContaining('punctual-tenant'), 'punctual key list']);
  // What was found among all is changed among all.
  await row(page, 'of-initech').getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await expect.poll(() => row(page, 'of-initech').count()).toBe(0);
  await page.getByRole('combobox', { name: 'Tenant' }).selectOption('globex');
  await page.getByRole('button', { name: 'Of globex' }).click();
  await expect.poll(() => row(page, 'tester').count()).toBe(0);
  await row(page, 'of-globex').first().waitFor();
  expect(await copied()).toEqual([
    expect.stringContaining("'punctual-tenant: globex'"),
    'punctual key list --tenant globex',
  ]);
  await page.getByRole('link', { name: 'Audit' }).click();
  await row(page, 'cluster.pause').first().waitFor();
  await page.getByRole('button', { name: 'Of globex' }).click();
  await expect.poll(() => row(page, 'cluster.pause').count()).toBe(0);
  await row(page, 'queue.pause').filter({ hasText: 'globex-queue' }).waitFor();
  await expectAccessible(page);

  const admin = await Visit.begin(node, { key, path: '/keys' });
  await row(admin.page, 'boss-of-globex').waitFor();
  expect(await row(admin.page, 'tester').count()).toBe(0);
  for (const [path, own] of [
    ['/audit', 'globex-queue'],
    ['/tenants', 'globex'],
    ['/secrets', 'of-globex'],
  ] as const) {
    await admin.page.goto(admin.root + path);
    await row(admin.page, own).first().waitFor();
    expect(await admin.page.getByRole('button', { name: 'All tenants' }).count()).toBe(0);
    const text = await admin.page.getByRole('main').textContent();
    for (const other of ['cluster.', 'initech', 'acme', 'New tenant'])
      expect(text, path).not.toContain(other);
  }
});
