import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { makeDataFolder } from './data-folder.js';

const folder = mkdtempSync(join(tmpdir(), 'punctual-data-'));
afterAll(() => rmSync(folder, { recursive: true }));

it('a new data folder is ignored by git and closed to others; one that exists stays as it is', async () => {
  const data = join(folder, 'a', '.punctual');
  expect(await makeDataFolder(data)).toBe(true);
  expect(readFileSync(join(data, '.gitignore'), 'utf8')).toBe('*\n');
  expect(statSync(data).mode & 0o777).toBe(0o700);
  expect(await makeDataFolder(join(folder, 'a'))).toBe(false);
  expect(readdirSync(join(folder, 'a'))).toEqual(['.punctual']);
});
