import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { push } from '../integration/artifacts/artifact-for-tests.js';
import { TestNode } from '../node-for-tests.js';
import { handMadeElf } from '../programs/hand-made-elf.js';
import { expectAccessible } from './accessibility.js';
import { Visit } from './visit.js';

let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

it('artifacts are shown with what names them, and one that nothing names is deleted', async () => {
  const elf = Buffer.concat([handMadeElf('x64', 0), randomBytes(16)]);
  const { id } = await push(node, elf, { name: 'packer', version: '1.4.0' });
  await node.get('POST', '/v1/tasks', {
    body: { name: 'pack', target: { type: 'exec', artifact: 'packer' } },
  });
  const visit = await Visit.begin(node, { path: '/artifacts' });
  // The browser itself says that a request was refused.
  visit.expects(/status of 409/);
  const { page } = visit;
  const row = page.getByRole('row').filter({ hasText: 'packer' });
  await row.getByText('1.4.0').waitFor();
  await row.getByText('elf, x64').waitFor();
  await expectAccessible(page);
  await row.click();
  await page.getByRole('heading', { name: 'packer@1.4.0' }).waitFor();
  await page.getByText('task pack').waitFor();
  await expectAccessible(page);
  const remove = async () => {
    await page.getByRole('button', { name: 'Delete' }).first().click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  };
  await remove();
  await page.getByText(`Artifact ${id} is named by task pack`).first().waitFor();
  await node.get('DELETE', '/v1/tasks/pack');
  await page.reload();
  await page.getByRole('heading', { name: 'packer@1.4.0' }).waitFor();
  await remove();
  await page.getByRole('heading', { name: 'No artifacts' }).waitFor();
  expect((await node.ask('GET', `/v1/artifacts/${id}`)).status).toBe(404);
});
