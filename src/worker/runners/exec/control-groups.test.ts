import { execFileSync } from 'node:child_process';
import {
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { baseOf, closeControlGroups, openControlGroups, whyNotEntered } from './control-groups.js';

const MOUNTS = `24 1 0:22 / /proc rw - proc proc rw
31 1 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate`;

describe('the group that a worker may use', () => {
  it.each([
    ['0::/system.slice/punctual.service\n', '/sys/fs/cgroup/system.slice/punctual.service'],
    ['4:memory:/x\n0::/\n', '/sys/fs/cgroup'],
  ])('is its own: %j', (own, use) => {
    expect(baseOf('', { mounts: MOUNTS, own })).toEqual({ use });
  });

  it('is found where only a part of all groups is mounted', () => {
    const mounts = '31 1 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup rw';
    expect(baseOf('', { mounts, own: '0::/docker/abc/inner\n' })).toEqual({ use: '/sys/fs/cgroup/inner' });
    expect(baseOf('', { mounts, own: '0::/docker\n' })).toHaveProperty('why');
  });

  it('is none where there is none of version 2, and where what is named is none', () => {
    expect(baseOf('', { mounts: '1 1 0:1 / / rw - ext4 a rw', own: '0::/\n' })).toHaveProperty('why');
    expect(baseOf('', { mounts: MOUNTS, own: '4:memory:/x\n' })).toHaveProperty('why');
    expect(baseOf('/proc', { mounts: MOUNTS, own: '' })).toHaveProperty('why');
    expect(baseOf('here', { mounts: MOUNTS, own: '' })).toHaveProperty('why');
  });
});

/** A folder with the files of a group, without a kernel behind them. */
function plainGroup({ processes = '', controllers = 'cpuset cpu io memory pids' } = {}): string {
  const path = mkdtempSync(join(tmpdir(), 'punctual-group-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  const write = (at: string) => {
    writeFileSync(join(at, 'cgroup.procs'), processes);
    writeFileSync(join(at, 'cgroup.controllers'), controllers);
    writeFileSync(join(at, 'cgroup.subtree_control'), '');
  };
  write(path);
  return path;
}

const surroundings = { mounts: MOUNTS, own: '0::/\n', pid: 41 };

describe('the groups of a worker', () => {
  it('are none if they are switched off', async () => {
    expect(await openControlGroups('off', 'w', surroundings)).toEqual({
      why: 'control groups are switched off',
    });
  });

  it('are none where other processes run: these are not to be moved', async () => {
    const path = plainGroup({ processes: '41\n42\n' });
    expect(await openControlGroups(path, 'w', surroundings)).toEqual({
      why: `the control group ${path} cannot be used: other processes run in it`,
    });
    expect(readdirSync(path).sort()).toEqual([
      'cgroup.controllers',
      'cgroup.procs',
      'cgroup.subtree_control',
    ]);
  });

  it('are made when the worker has left its own for one below it', async () => {
    const path = plainGroup({ processes: '41\n' });
    // Without a kernel, the group of the worker's attempts has no files, and nothing goes on from there.
    mkdirSync(join(path, 'punctual-worker'));
    writeFileSync(join(path, 'punctual-worker', 'cgroup.procs'), '');
    expect(await openControlGroups(path, 'w', surroundings)).toHaveProperty('why');
    expect(readFileSync(join(path, 'punctual-worker', 'cgroup.procs'), 'utf8')).toBe('41');
    expect(readFileSync(join(path, 'cgroup.subtree_control'), 'utf8')).toMatch(/^\+(memory|pids|cpu)$/);
  });
});

/** A group of the kernel, without controllers; null if this process can make none. */
function realGroup(): string | null {
  try {
    const mounts = readFileSync('/proc/self/mountinfo', 'utf8').split('\n');
    const mount = mounts.find((line) => line.includes(' - cgroup2 '))!.split(' ')[4]!;
    const path = join(mount, `punctual-enter-${process.pid}`);
    mkdirSync(path);
    return path;
  } catch {
    return null;
  }
}

it('groups of the kernel are used only if programs can enter them', async ({ skip }) => {
  const path = realGroup();
  if (path === null) skip('no groups can be made here');
  onTestFinished(() => rmdirSync(path!));
  expect(await whyNotEntered(path!)).toBeNull();
  const groups = await openControlGroups(path!, 'w');
  expect(groups).toHaveProperty('use');
  if ('use' in groups) await closeControlGroups(groups.use);
  if (process.getuid?.() !== 0) return;
  // Its own, and not the one that both this group and the one of its processes are below.
  const user = 23_456;
  for (const each of ['', 'cgroup.procs', 'cgroup.subtree_control']) chownSync(join(path!, each), user, user);
  const module = new URL('../../../../dist/worker/runners/exec/control-groups.js', import.meta.url).href;
  const script = `import(${JSON.stringify(module)})
    .then(({ openControlGroups }) => openControlGroups(${JSON.stringify(path)}, 'w'))
    .then((found) => console.log(JSON.stringify(found)))`;
  const options = { uid: user, gid: user, encoding: 'utf8', cwd: '/' } as const;
  expect(JSON.parse(execFileSync(process.execPath, ['-e', script], options))).toEqual({
    why: expect.stringMatching(/cannot enter groups below it/),
  });
  expect(readdirSync(path!).some((name) => name.startsWith('punctual-'))).toBe(false);
});
