import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { lockFolder } from './folder-lock.js';
import { processMark } from './process-identity.js';

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'punctual-lock-'));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

function leaveLock(number: number, text: string): Promise<void> {
  return writeFile(join(folder, `postgres.lock.${number}`), text);
}

const LEFT = { since: '2026-01-01T00:00:00.000Z', released: false };

describe('the lock of a folder', () => {
  it('is held by one and refused to others, naming the holder', async () => {
    await lockFolder(folder);
    await expect(lockFolder(folder)).rejects.toMatchObject({
      code: 'EMBEDDED_POSTGRES',
      message: expect.stringContaining('this process itself'),
    });
  });

  it('can be taken again after it was released, and leaves one file however often', async () => {
    for (let round = 0; round < 5; round += 1) {
      const lock = await lockFolder(folder);
      await lock.release();
    }
    expect(await readdir(folder)).toEqual(['postgres.lock.5']);
  });

  it('goes to exactly one of many who ask at once, round after round', async () => {
    for (let round = 0; round < 10; round += 1) {
      const results = await Promise.allSettled(Array.from({ length: 20 }, () => lockFolder(folder)));
      const won = results.filter((result) => result.status === 'fulfilled');
      expect(won).toHaveLength(1);
      await won[0]!.value.release();
    }
  });

  it('goes to exactly one of many who find a dead holder', async () => {
    await leaveLock(7, JSON.stringify({ ...LEFT, pid: 2 ** 31 - 1, mark: 'boot/1' }));
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => lockFolder(folder)));
    expect(results.filter((result) => result.status === 'fulfilled')).toHaveLength(1);
    expect(await readdir(folder)).toEqual(['postgres.lock.8']);
  });

  it('is not kept by a process that has the number of the dead holder by chance', async () => {
    await leaveLock(1, JSON.stringify({ ...LEFT, pid: process.pid, mark: 'an earlier boot/1' }));
    await expect(lockFolder(folder)).resolves.toBeDefined();
  });

  it('is kept by a living holder', async () => {
    const pid = process.ppid;
    await leaveLock(3, JSON.stringify({ ...LEFT, pid, mark: await processMark(pid) }));
    await expect(lockFolder(folder)).rejects.toThrow(`process ${pid} since 2026-01-01`);
  });

  it('is free when a power cut has torn its file', async () => {
    await leaveLock(1, '{"pid": 1');
    await leaveLock(2, '');
    await expect(lockFolder(folder)).resolves.toBeDefined();
  });
});
