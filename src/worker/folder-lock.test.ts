import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { FolderInUseError, lockFolder } from './folder-lock.js';

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'punctual-lock-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const BUILT = new URL('../../dist/worker/folder-lock.js', import.meta.url).href;

/** Another process that has locked the folder. */
async function holderOf(folder: string) {
  const program = `
    import { lockFolder } from ${JSON.stringify(BUILT)};
    lockFolder(${JSON.stringify(folder)});
    console.log('locked');
    setTimeout(() => undefined, 60_000);
  `;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program]);
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

describe('the lock of a folder', () => {
  it('is held until it is released, and can then be taken again', () => {
    const folder = newFolder();
    const release = lockFolder(folder);
    expect(() => lockFolder(folder)).toThrow(FolderInUseError);
    release();
    lockFolder(folder)();
    expect(readdirSync(folder)).toEqual(['lock.2']);
  });

  it('is held against other processes, and ends with the one that holds it', async () => {
    const folder = newFolder();
    const child = await holderOf(folder);
    expect(() => lockFolder(folder)).toThrow(`in use by the worker in process ${child.pid}`);
    child.kill('SIGKILL');
    await once(child, 'exit');
    lockFolder(folder)();
  });

  it('is not kept by a file that a power cut has spoiled', () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'lock.7'), '{"pid":');
    lockFolder(folder)();
    expect(readdirSync(folder)).toEqual(['lock.8']);
  });

  it('is not kept by another process that was given the number of a dead one', () => {
    const folder = newFolder();
    writeFileSync(join(folder, 'lock.1'), JSON.stringify({ pid: process.ppid, mark: 'long ago' }));
    lockFolder(folder)();
  });
});
