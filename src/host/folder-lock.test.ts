import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { lockFolder } from './folder-lock.js';
import { processMark } from './processes.js';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'punctual-lock-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

const lock = () =>
  lockFolder(folder, 'lock.', ({ pid, since }) => new Error(`held by ${pid} since ${since}`));

function leaveLock(number: number, text: string): void {
  writeFileSync(join(folder, `lock.${number}`), text);
}

const LEFT = { since: '2026-01-01T00:00:00.000Z', released: false };
const BUILT = new URL('../../dist/host/folder-lock.js', import.meta.url).href;

/** Other processes that race for the folder; each says whether it has got it, and holds it. */
function rivals(count: number) {
  const program = `
    import { lockFolder } from ${JSON.stringify(BUILT)};
    try {
      lockFolder(${JSON.stringify(folder)}, 'lock.', () => new Error('held'));
      console.log('locked');
    } catch (error) {
      console.log(error.message);
    }
    setTimeout(() => undefined, 60_000);
  `;
  return Array.from({ length: count }, () => {
    const child = spawn(process.execPath, ['--input-type=module', '--eval', program]);
    onTestFinished(() => void child.kill('SIGKILL'));
    const said = once(child.stdout, 'data').then(([chunk]) => String(chunk).trim());
    return { child, said };
  });
}

describe('the lock of a folder', () => {
  it('is held by one and refused to others, naming the holder', () => {
    lock();
    expect(lock).toThrow(`held by ${process.pid} since 20`);
  });

  it('can be taken again after it was released, and leaves one file however often', () => {
    for (let round = 0; round < 5; round += 1) lock()();
    expect(readdirSync(folder)).toEqual(['lock.5']);
  });

  it('goes to exactly one of several processes that find a dead holder, and ends with it', async () => {
    leaveLock(7, JSON.stringify({ ...LEFT, pid: 2 ** 31 - 1, mark: 'boot/1' }));
    const all = rivals(4);
    const said = await Promise.all(all.map((rival) => rival.said));
    expect([...said].sort()).toEqual(['held', 'held', 'held', 'locked']);
    const winner = all[said.indexOf('locked')]!.child;
    expect(lock).toThrow(`held by ${winner.pid}`);
    winner.kill('SIGKILL');
    await once(winner, 'exit');
    lock();
  });

  it('is not kept by a process that has the number of the dead holder by chance', () => {
    leaveLock(1, JSON.stringify({ ...LEFT, pid: process.pid, mark: 'an earlier boot/1' }));
    lock();
  });

  it('is kept by a living holder', () => {
    const pid = process.ppid;
    leaveLock(3, JSON.stringify({ ...LEFT, pid, mark: processMark(pid) }));
    expect(lock).toThrow(`held by ${pid} since 2026-01-01`);
  });

  it('is free when a power cut has torn its file', () => {
    leaveLock(1, '{"pid": 1');
    leaveLock(2, '');
    lock();
  });
});
