import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { LogFile } from './log-file.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'punctual-log-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

it('keeps the log of the previous start and begins a new one', () => {
  const path = join(folder, 'logs', 'node.log');
  for (const text of ['first', 'second', 'third']) {
    const log = new LogFile(path);
    log.write(text);
    log.close();
  }
  expect(readFileSync(path, 'utf8')).toBe('third\n');
  expect(readFileSync(`${path}.1`, 'utf8')).toBe('second\n');
  expect(readdirSync(join(folder, 'logs'))).toHaveLength(2);
});

it('never holds more than twice its size on disk', () => {
  const path = join(folder, 'node.log');
  const log = new LogFile(path, 100);
  for (let line = 0; line < 100; line += 1) log.write(`line ${line}`);
  log.close();
  expect(statSync(path).size).toBeLessThanOrEqual(100);
  expect(statSync(`${path}.1`).size).toBeLessThanOrEqual(100);
  expect(readFileSync(path, 'utf8')).toMatch(/line 99\n$/);
});
