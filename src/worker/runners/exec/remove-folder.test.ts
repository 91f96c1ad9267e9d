import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { removeFolder } from './remove-folder.js';

function newFolder(): string {
  const root = mkdtempSync(join(tmpdir(), 'punctual-remove-'));
  onTestFinished(() => void execFileSync('rm', ['-rf', root]));
  mkdirSync(join(root, 'job'));
  return join(root, 'job');
}

describe('the folder of a program', () => {
  it('is removed with folders nested deeper than a path may be long', async () => {
    const path = newFolder();
    const name = 'x'.repeat(200);
    // A shell goes down one by one, as a program would.
    const script = `i=0; while [ $i -lt 40 ]; do mkdir ${name} && cd -P ${name} || exit 1; : > file; i=$((i + 1)); done`;
    execFileSync('sh', ['-c', script], { cwd: path });
    expect(() => rmSync(path, { recursive: true, force: true })).toThrow();
    await removeFolder(path);
    expect(existsSync(path)).toBe(false);
  });

  it('is removed with folders that are closed, and nothing behind its links is', async () => {
    const path = newFolder();
    const kept = join(path, '..', 'kept');
    mkdirSync(kept);
    writeFileSync(join(kept, 'file'), '');
    symlinkSync(kept, join(path, 'link'));
    mkdirSync(join(path, 'a', 'b', 'c'), { recursive: true });
    symlinkSync(kept, join(path, 'a', 'b', 'link'));
    writeFileSync(join(path, 'a', 'b', 'file'), '');
    execFileSync('chmod', ['000', join(path, 'a', 'b'), join(path, 'a')]);
    await removeFolder(path);
    expect(existsSync(path)).toBe(false);
    expect(existsSync(join(kept, 'file'))).toBe(true);
  });

  it('may be gone already', async () => {
    const path = newFolder();
    await removeFolder(path);
    await removeFolder(path);
  });
});
