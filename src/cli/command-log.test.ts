import { mkdtempSync, openSync, readdirSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { LogFile } from './command-log.js';

vi.mock('node:fs', async (original) => {
  const fs = await original<typeof import('node:fs')>();
  return { ...fs, openSync: vi.fn(fs.openSync), writeSync: vi.fn(fs.writeSync) };
});

const noSpace = () => Object.assign(new Error('ENOSPC: no space left on device'), { code: 'ENOSPC' });
const fail = () => {
  throw noSpace();
};

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

it('drops what a full disk does not take, goes on when there is room, and says how much is missing', () => {
  const path = join(folder, 'node.log');
  const log = new LogFile(path);
  log.write('before');
  vi.mocked(writeSync).mockImplementationOnce(fail).mockImplementationOnce(fail);
  log.write('lost');
  log.write('lost too');
  log.write('after');
  log.write('and on');
  log.close();
  const [before, notice, ...rest] = readFileSync(path, 'utf8').split('\n');
  expect([before, rest]).toEqual(['before', ['after', 'and on', '']]);
  expect(JSON.parse(notice!)).toMatchObject({
    level: 40,
    msg: expect.stringMatching(/^2 lines .* ENOSPC/),
  });
});

it('begins a new line after one that the disk took in part', () => {
  const path = join(folder, 'node.log');
  const log = new LogFile(path);
  const real = vi.mocked(writeSync).getMockImplementation()!;
  vi.mocked(writeSync)
    .mockImplementationOnce((fd, bytes) => real(fd, String(bytes).slice(0, 2)))
    .mockImplementationOnce(fail);
  log.write('torn');
  log.write('whole');
  log.close();
  expect(readFileSync(path, 'utf8')).toMatch(/^to\n\{.*\}\nwhole\n$/);
});

it('goes on when the next file could not be begun', () => {
  const path = join(folder, 'node.log');
  const log = new LogFile(path, 20);
  log.write('a line of its own');
  vi.mocked(openSync).mockImplementationOnce(fail);
  log.write('lost');
  log.write('after');
  log.close();
  expect(readFileSync(path, 'utf8')).toMatch(/\nafter\n$/);
});
