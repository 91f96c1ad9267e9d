import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Job } from '../../src/core/job.js';
import type { JobPage } from '../../src/core/wire.js';
import { announce } from '../integration/artifacts/artifact-for-tests.js';
import { TestNode } from '../node-for-tests.js';
import { expectAccessible } from './accessibility.js';
import { Visit } from './visit.js';

const SCHEMA = {
  type: 'object',
  required: ['to', 'count'],
  additionalProperties: false,
  properties: {
    to: { type: 'string', title: 'Recipient', description: 'An address', minLength: 3 },
    count: { type: 'integer', minimum: 1, maximum: 1e30 },
    urgent: { type: 'boolean' },
    kind: { enum: ['plain', 'html'] },
    tags: { type: 'array', items: { type: 'string' } },
    sender: { type: 'object', properties: { name: { type: 'string' } } },
  },
};

let node: TestNode;
beforeAll(async () => {
  node = await TestNode.start();
  await node.get('POST', '/v1/tasks', {
    body: { name: 'send-mail', description: 'Sends one mail', queue: 'mail', payloadSchema: SCHEMA },
  });
});
afterAll(() => node.stop());

const newest = async (): Promise<Job> => (await node.get<JobPage>('GET', '/v1/jobs?limit=1')).data[0]! as Job;

it('a job is submitted with the schema of its task as a form; mistakes are told at the fields', async () => {
  const visit = await Visit.begin(node, { path: '/submit' });
  const { page } = visit;
  await page.getByLabel('Task').fill('send-mail');
  await page.getByText('Sends one mail').waitFor();
  await page.getByLabel('Recipient').fill('ad');
  await page.getByLabel('count').fill('12345678901234567890');
  await page.getByLabel('kind').selectOption('html');
  await page.getByLabel('urgent').selectOption('yes');
  await page.getByLabel('tags').fill('a\nb');
  await page.getByRole('group', { name: 'sender' }).getByLabel('name').fill('Ada');
  await expectAccessible(page);
  visit.expects(/status of 422/);
  await page.getByRole('button', { name: 'Submit the job' }).click();
  const recipient = page.getByLabel('Recipient');
  await expect.poll(() => recipient.getAttribute('aria-invalid')).toBe('true');
  await page.getByText('must have at least 3 characters').waitFor();

  await recipient.fill('ada@example.com');
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  expect(await page.getByLabel('Payload').inputValue()).toContain('"count": 12345678901234567890');
  await page.getByText('Key, delivery, retries, limits').click();
  await page.getByLabel('Key', { exact: true }).fill('mail-1');
  await page.getByLabel('When').selectOption('delay');
  await page.getByLabel('After').fill('1h');
  const command = page.getByRole('region', { name: 'Command line' });
  await command.getByText('--key mail-1').waitFor();
  expect(await command.textContent()).toMatch(
    /punctual job submit --task send-mail --payload '.*' --delay 1h/s,
  );
  expect(await page.getByRole('region', { name: 'curl' }).textContent()).toContain('-X POST');
  await page.getByRole('button', { name: 'Submit the job' }).click();
  await page.getByRole('heading', { name: 'send-mail' }).waitFor();
  expect(await newest()).toMatchObject({
    ...{ task: 'send-mail', queue: 'mail', key: 'mail-1' },
    payload: { to: 'ada@example.com', urgent: true, kind: 'html', tags: ['a', 'b'], sender: { name: 'Ada' } },
  });
  await page.getByText('12345678901234567890').waitFor();
});

it('a job is edited and run again, and a key that has a job is told', async () => {
  const first = await node.submit({
    ...{ task: 'free', payload: { n: 1 }, queue: 'mail', priority: 7, key: 'once', hold: true },
    requires: { region: 'eu' },
  });
  const { page } = await Visit.begin(node, { path: `/jobs/${first.id}` });
  await page.getByRole('link', { name: 'Edit and run again' }).click();
  await page.getByRole('heading', { name: 'Edit and run again' }).waitFor();
  const payload = page.getByLabel('Payload');
  await payload.fill('{"n": ');
  await page.getByText('This is not JSON').waitFor();
  expect(await page.getByRole('button', { name: 'Submit the job' }).isDisabled()).toBe(true);
  await payload.fill('{"n": 2}');
  await page.getByLabel('When').selectOption('at');
  await page.getByRole('button', { name: 'Submit the job' }).click();
  await page.getByText('The job is submitted.').waitFor();
  const again = await newest();
  expect(again).toMatchObject({ payload: { n: 2 }, priority: 7, key: null, requires: { region: 'eu' } });
  expect(Date.parse(again.runAt)).toBeGreaterThan(Date.now() + 3_000_000);

  await page.goto(`${node.url}/submit?task=free&payload=3`);
  await page.getByText('Key, delivery, retries, limits').click();
  await page.getByLabel('Key', { exact: true }).fill('once');
  await page.getByRole('button', { name: 'Submit the job' }).click();
  await page.getByText(/The key has this job already.*differs in/).waitFor();
  await expect.poll(() => page.url()).toContain(first.id);
});

it('a call is submitted with its headers, and a wrong address is told at its field', async () => {
  const visit = await Visit.begin(node, { path: '/submit' });
  const { page } = visit;
  await page.getByRole('button', { name: 'A call to a URL' }).click();
  await page.getByRole('textbox', { name: 'URL' }).fill('https://user:password@example.com/hook');
  await page
    .getByLabel('Headers')
    .fill('x-team: blue\nauthorization: {"$secret": "token", "prefix": "Bearer "}');
  await page.getByText('More about the call').click();
  await page.getByLabel('Other fields of the target').fill('{"expect": [204]}');
  visit.expects(/status of 422/);
  await page.getByRole('button', { name: 'Submit the job' }).click();
  await page.getByText('must not contain a user or a password').waitFor();
  await expectAccessible(page);
  await page.getByRole('textbox', { name: 'URL' }).fill('https://example.com/hook');
  await page.getByText('Key, delivery, retries, limits').click();
  await page.getByLabel('On hold until somebody releases it').check();
  await page.getByRole('button', { name: 'Submit the job' }).click();
  await page.getByRole('heading', { name: 'POST https://example.com/hook' }).waitFor();
  expect((await newest()).target).toEqual({
    ...{ type: 'http', url: 'https://example.com/hook', method: 'POST', expect: [204] },
    headers: { 'x-team': 'blue', authorization: { $secret: 'token', prefix: 'Bearer ' } },
  });
});

it('a program is submitted with its arguments, and edited and run again', async () => {
  const { page, root } = await Visit.begin(node, { path: '/submit' });
  await page.getByRole('button', { name: 'A program' }).click();
  await page.getByLabel('Artifact').fill('packer@1.0');
  await page.getByLabel('Arguments').fill('--fast\nin file');
  await page.getByLabel('Environment').fill('REGION=eu=1');
  await page.getByLabel('Isolation').selectOption('required');
  await page.getByLabel('Payload').fill('{"id": 12345678901234567890}');
  await expectAccessible(page);
  const artifact = await announce(node, Buffer.from('not there yet'), { name: 'packer', version: '1.0' });
  await page.getByRole('button', { name: 'Submit the job' }).click();
  await page.getByRole('heading', { name: 'packer@1.0' }).waitFor();
  const { id } = await newest();
  const { target } = await node.get<Job>('GET', `/v1/jobs/${id}`);
  expect(target).toEqual({
    ...{ type: 'exec', artifact: artifact.body.id, args: ['--fast', 'in file'], env: { REGION: 'eu=1' } },
    isolation: 'required',
  });
  await page.goto(`${root}/submit?from=${id}`);
  await expect.poll(() => page.getByLabel('Arguments').inputValue()).toBe('--fast\nin file');
  expect(await page.getByLabel('Environment').inputValue()).toBe('REGION=eu=1');
});
