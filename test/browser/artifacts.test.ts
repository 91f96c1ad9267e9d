import { randomBytes } from 'node:crypto';
import { buffer as readStream } from 'node:stream/consumers';
import type { Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { NewKeyView } from '../../src/core/access.js';
import { announce, push } from '../integration/artifacts/artifact-for-tests.js';
import { TestNode } from '../node-for-tests.js';
import { handMadeElf } from '../programs/hand-made-elf.js';
import { ProtocolWorker } from '../protocol-worker.js';
import { expectAccessible } from './accessibility.js';
import { Visit } from './visit.js';

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

const row = (page: Page, name: string) => page.getByRole('row').filter({ hasText: name });
const newElf = () => Buffer.concat([handMadeElf('x64', 0), randomBytes(16)]);

it('artifacts are listed with their versions, say what uses them, and go when nothing does', async () => {
  const elf = newElf();
  const old = await push(node, newElf(), { name: 'packer', version: '1.0.0' });
  const used = await push(node, elf, { name: 'packer', version: '1.1.0' });
  await push(node, randomBytes(2_000_000), { name: 'fonts', version: '7', runnable: false });
  await announce(node, newElf(), { name: 'late', version: '1' });
  await node.get('POST', '/v1/schedules', {
    body: { name: 'nightly', cron: '0 3 * * *', target: { type: 'exec', artifact: 'packer@1.1.0' } },
  });

  const visit = await Visit.begin(node, { path: '/artifacts' });
  const { page } = visit;
  await row(page, 'packer@1.1.0').getByText('program for x64').waitFor();
  await row(page, 'fonts@7').getByText('1.9 MiB').waitFor();
  await row(page, 'late@1').getByText('pending').waitFor();
  await expectAccessible(page);
  await page.getByRole('button', { name: 'pending' }).click();
  await expect.poll(() => row(page, 'packer').count()).toBe(0);
  await page.getByRole('button', { name: 'all' }).click();
  await page.getByLabel('Name').fill('packer');
  // Whatever draws the page anew leaves what is being typed.
  await page.evaluate('dispatchEvent(new PopStateEvent("popstate"))');
  await page.getByLabel('Name').press('Tab');
  await expect.poll(() => row(page, 'fonts').count()).toBe(0);
  await expect.poll(() => row(page, 'packer').count()).toBe(2);

  await row(page, 'packer@1.1.0').getByRole('link', { name: 'packer@1.1.0', exact: true }).click();
  await page.getByRole('heading', { name: 'packer@1.1.0', level: 1 }).waitFor();
  const uses = page.getByRole('region', { name: 'Who uses it' });
  await uses.getByRole('link', { name: 'nightly' }).waitFor();
  await page.getByText(used.sha256).waitFor();
  await expectAccessible(page);
  visit.expects(/status of 409/);
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('is named by schedule nightly').first().waitFor();
  expect((await node.ask('GET', `/v1/artifacts/${used.id}`)).status).toBe(200);

  await page.goto(`${visit.root}/artifacts/${old.id}`);
  await page.getByText('Nothing names it').waitFor();
  await page.getByRole('button', { name: 'Copy as a command' }).first().click();
  expect(await page.locator('.menu:popover-open .menu-item').last().getAttribute('title')).toBe(
    `punctual artifact delete ${old.id}`,
  );
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByRole('heading', { name: 'Artifacts', level: 1 }).waitFor();
  expect((await node.ask('GET', `/v1/artifacts/${old.id}`)).status).toBe(404);
});

/** What a click saves: its name and its bytes. */
async function saved(page: Page, link: Locator): Promise<readonly [name: string, bytes: Buffer]> {
  const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
  return [download.suggestedFilename(), await readStream(await download.createReadStream())];
}

it('the page of a job names the artifact that it runs, and what it has left is saved, never shown', async () => {
  const user = node.newTenant();
  const elf = newElf();
  const artifact = await push(user, elf, { name: 'hello', version: '1.0' });
  const worker = await ProtocolWorker.register(user, { targets: ['exec'], tasks: [] });
  const { id } = await user.submit({ target: { type: 'exec', artifact: 'hello@1.0' } });
  const assignment = await worker.claimOne();
  const markup = '<script>window.planted = 1</script>';
  const put = (name: string, body: string) =>
    fetch(`${node.url}/v1/jobs/${id}/outputs/${encodeURIComponent(name)}`, {
      ...{ method: 'PUT', headers: { authorization: `Bearer ${assignment.token}` }, body },
    });
  expect((await put('deep/page.html', markup)).status).toBe(201);
  await worker.succeed(assignment);

  // An operator, who says which tenant is meant; a link cannot have the header for that.
  const visit = await Visit.begin(node);
  const { page } = visit;
  await page.evaluate(`sessionStorage.setItem('punctual-tenant', '${user.tenant}')`);
  await page.goto(`${visit.root}/jobs/${id}`);
  const top = page.getByRole('heading', { level: 1 });
  await top.getByRole('link', { name: 'hello@1.0' }).waitFor();
  await page.getByRole('region', { name: 'About it' }).getByRole('link', { name: 'hello@1.0' }).waitFor();
  const asked = visit.requests.filter((request) => request === `GET /v1/artifacts/${artifact.id}`);
  expect(asked).toHaveLength(1);
  const left = page.getByRole('region', { name: 'Files it left' });
  await left.getByRole('row', { name: 'deep/page.html' }).getByText('35 B').waitFor();
  await expectAccessible(page);
  const link = left.getByRole('link', { name: 'Download deep/page.html' });
  expect(await saved(page, link)).toEqual(['page.html', Buffer.from(markup)]);
  // Also without the word that has the browser save it.
  await link.evaluate('(element) => element.removeAttribute("download")');
  expect(await saved(page, link)).toEqual(['page.html', Buffer.from(markup)]);
  expect(page.url()).toBe(`${visit.root}/jobs/${id}`);
  await page.setViewportSize({ width: 360, height: 740 });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);

  await top.getByRole('link', { name: 'hello@1.0' }).click();
  await page.getByRole('heading', { name: 'hello@1.0', level: 1 }).waitFor();
  const program = page.getByRole('link', { name: 'Download hello@1.0' });
  expect(await saved(page, program)).toEqual(['hello-1.0', elf]);

  // Artifacts are in no queue, so there are none for a key that is restricted to some.
  const body = { name: 'sorter', scopes: ['read'], tenant: user.tenant, queues: ['default'] };
  const { key } = await node.get<NewKeyView>('POST', '/v1/keys', { body });
  const restricted = (await Visit.begin(node, { key, path: `/jobs/${id}` })).page;
  await restricted.getByRole('row', { name: 'deep/page.html' }).getByText('35 B').waitFor();
  expect(await restricted.getByRole('main').locator('a[href*="artifacts/"]').count()).toBe(0);

  visit.expects(/status of 404/);
  await user.get('DELETE', `/v1/artifacts/${artifact.id}`);
  await page.goto(`${visit.root}/jobs/${id}`);
  await left.getByText('deep/page.html').waitFor();
  expect(await top.textContent()).toContain(artifact.id);
  expect(await top.getByRole('link').count()).toBe(0);
});

it('artifacts of a tenant are no affair of others, and who may only read deletes none', async () => {
  await push(node.newTenant(), newElf(), { name: 'theirs', version: '1' });
  const body = { name: 'looker', scopes: ['read'], tenant: 'default' };
  const { key } = await node.get<NewKeyView>('POST', '/v1/keys', { body });
  const { page } = await Visit.begin(node, { key, path: '/artifacts' });
  await row(page, 'fonts@7').waitFor();
  expect(await page.getByText('theirs').count()).toBe(0);
  expect(await page.getByRole('button', { name: 'Delete' }).count()).toBe(0);
});
