import { expect, it } from 'vitest';
import { isServerOf } from './left-behind.js';

it('no process is taken for the server of a folder by its number alone', async () => {
  expect(await isServerOf(process.pid, '/nowhere/postgres')).toBe(false);
  expect(await isServerOf(2 ** 31 - 1, '/nowhere/postgres')).toBe(false);
});
