import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { LifeLine } from '../../../../../test/hostile-program.js';
import { endGroup, makeGroup, oomKillsIn } from './control-group.js';

/** A folder in which this process may make groups, without limits; null if there is none. */
function realGroups(): string | null {
  try {
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
    const mount = mounts.find((line) => line.includes(' - cgroup2 '))!.split(' ')[4]!;
    const path = join(mount, `punctual-test-${process.pid}`);
    mkdirSync(path);
    rmdirSync(path);
    return path;
  } catch {
    return null;
  }
}

const GROUPS = realGroups();

describe.runIf(GROUPS !== null)('a control group of the kernel', () => {
  it('is ended with all that runs in it and below it, and is gone then', async () => {
    const path = GROUPS!;
    makeGroup({ path, settings: {} });
    makeGroup({ path: join(path, 'below'), settings: {} });
    const lines = [new LifeLine(), new LifeLine()];
    for (const [index, line] of lines.entries()) {
      const at = index === 0 ? path : join(path, 'below');
      const script = `echo 0 > ${at}/cgroup.procs; exec 3>"${line.path}"; echo up >&3; trap '' TERM; exec setsid sleep 1000`;
      spawn('/bin/sh', ['-c', script], { stdio: 'ignore' });
      await line.up.times(1);
    }
    expect(await endGroup(path)).toBe(true);
    await Promise.all(lines.map(({ gone }) => gone));
    expect(existsSync(path)).toBe(false);
  });

  it('is not made with a limit that the kernel does not know', () => {
    const path = GROUPS!;
    onTestFinished(() => rmdirSync(path));
    expect(() => makeGroup({ path, settings: { 'punctual.max': '1' } })).toThrow('ENOENT');
  });
});

it('groups that are nested deeply are removed in as many steps as there are', async () => {
  const root = mkdtempSync(join(tmpdir(), 'punctual-group-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const path = join(root, 'group');
  const deepest = join(path, ...Array.from({ length: 24 }, () => 'd'));
  mkdirSync(deepest, { recursive: true });
  // As if something ran in it.
  writeFileSync(join(deepest, 'busy'), '');
  const ended = endGroup(path);
  rmSync(join(deepest, 'busy'));
  expect(await ended).toBe(true);
  expect(existsSync(path)).toBe(false);
});

it('a group that is gone is removed already', async () => {
  expect(await endGroup(join(tmpdir(), 'punctual-no-such-group'))).toBe(true);
});

it('the ends for want of memory are counted by the kernel', () => {
  const path = mkdtempSync(join(tmpdir(), 'punctual-group-'));
  onTestFinished(() => rmSync(path, { recursive: true }));
  expect(oomKillsIn(path)).toBe(0);
  writeFileSync(join(path, 'memory.events'), 'low 0\nhigh 0\nmax 31\noom 2\noom_kill 1\noom_group_kill 1\n');
  expect(oomKillsIn(path)).toBe(1);
});
