import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestNode } from '../node-for-tests.js';
import { expectAccessible } from './accessibility.js';
import { signInCode, Visit } from './visit.js';

let node: TestNode;

beforeAll(async () => {
  node = await TestNode.start();
});
afterAll(() => node.stop());

it('a key that is typed in signs in, and stands in no address and no storage of the page', async () => {
  const { page } = await Visit.begin(node, { key: null });
  await page.getByLabel('Key').fill(node.apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  const kept = await page.evaluate<string>(
    'JSON.stringify([location.href, { ...localStorage }, { ...sessionStorage }])',
  );
  expect(kept).not.toContain(node.apiKey);
  expect(await page.evaluate('document.cookie')).toBe('');
});

it('a wrong key is refused with words, and another one can be typed', async () => {
  const { page } = await Visit.begin(node, { key: null });
  await page.getByLabel('Key').fill('pk_wrong');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('alert').getByText('The key is not valid').waitFor();
  await expectAccessible(page);
  await page.getByLabel('Key').fill(node.apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Home' }).waitFor();
});

it('a link signs in once, and its code leaves the address at once', async () => {
  const code = await signInCode(node, node.apiKey);
  const first = await Visit.begin(node, { key: null });
  await first.page.goto(`${node.url}/jobs?state=failed#code=${code}`);
  await first.page.getByRole('heading', { name: 'Jobs' }).waitFor();
  expect(first.page.url()).toBe(`${node.url}/jobs?state=failed`);
  const second = await Visit.begin(node, { key: null });
  await second.page.goto(`${node.url}/?again#code=${code}`);
  await second.page.getByText('The code was used, or is too old').waitFor();
  expect(second.page.url()).not.toContain('code');
});
