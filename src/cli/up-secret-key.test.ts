import { readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { expect, it } from 'vitest';
import { temporaryFolder } from '../../test/temporary-folder.js';
import { readMasterKeys } from '../core/secret-box.js';
import { findOrMakeSecretKey, secretKeyPath } from './up-secret-key.js';

it('a data folder gets a master key at the first start and keeps it, readable for its owner alone', async () => {
  const folder = await temporaryFolder();
  const key = await findOrMakeSecretKey(folder);
  expect(readMasterKeys(key)).toHaveLength(1);
  expect((await stat(secretKeyPath(folder))).mode & 0o777).toBe(0o600);
  expect(await findOrMakeSecretKey(folder)).toBe(key);
  expect(await readdir(folder)).toEqual(['secret-key']);
});

it('of several that start at the same time, all get the same key', async () => {
  const folder = await temporaryFolder();
  const keys = await Promise.all(Array.from({ length: 8 }, () => findOrMakeSecretKey(folder)));
  expect(new Set(keys).size).toBe(1);
});

it('several keys with commas between them are taken as they are', async () => {
  const folder = await temporaryFolder();
  const old = await findOrMakeSecretKey(folder);
  const both = `${'ab'.repeat(32)},${old}`;
  await writeFile(secretKeyPath(folder), `${both}\n`);
  expect(await findOrMakeSecretKey(folder)).toBe(both);
});

it('a key that cannot be read is never replaced, and the error does not quote it', async () => {
  const folder = await temporaryFolder();
  await writeFile(secretKeyPath(folder), 'half-a-key');
  const starting = findOrMakeSecretKey(folder);
  await expect(starting).rejects.toMatchObject({ code: 'CONFIGURATION' });
  await expect(starting).rejects.not.toThrow('half-a-key');
  expect(await readFile(secretKeyPath(folder), 'utf8')).toBe('half-a-key');
});
