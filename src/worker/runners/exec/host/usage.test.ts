import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { diskBytes } from './usage.js';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'usage-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

it('counts what is in a folder and below it', () => {
  const folder = newFolder();
  mkdirSync(join(folder, 'below'));
  writeFileSync(join(folder, 'a'), 'x'.repeat(8_192));
  writeFileSync(join(folder, 'below', 'b'), 'x'.repeat(8_192));
  expect(diskBytes(folder, 1_000_000)).toBe(16_384);
  expect(diskBytes(join(folder, 'gone'), 1_000_000)).toBe(0);
});

it('a folder with very many entries counts as too much', () => {
  const folder = newFolder();
  for (let i = 0; i < 22_000; i++) writeFileSync(join(folder, String(i)), '');
  expect(diskBytes(folder, 1_000_000)).toBe(Number.POSITIVE_INFINITY);
});
