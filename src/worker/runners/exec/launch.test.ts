import { describe, expect, it } from 'vitest';
import { type Launch, launch, lowerLimits, stricter } from './launch.js';
import { hardLimitsIn, type Machine, rangeIn } from './machine.js';
import { seccompFilter } from './seccomp.js';

const WITHOUT = { why: 'it is not here' };

const MACHINE: Machine = {
  architecture: 'x64',
  hostNamespace: WITHOUT,
  ownNamespace: { use: ['/usr/bin/unshare', '--pid', '--'] },
  users: { use: { first: 1_000_000, count: 10 } },
  bubblewrap: { use: '/usr/bin/bwrap' },
  namespaces: { use: { words: ['/usr/bin/unshare', '--user', '--', 'sh'], setpriv: '/usr/bin/setpriv' } },
  launcher: null,
  groups: WITHOUT,
  prlimit: '/usr/bin/prlimit',
  hardLimits: {},
  setpriv: null,
};
const PROGRAM: Launch = {
  ...{
    file: '/cache/abc',
    args: ['-v', '--', 'a b'],
    folder: '/jobs/1',
    needsMachine: false,
    hidden: ['/jobs'],
  },
  ...{ isolation: 'none', limits: {}, user: 1_000_003, filter: '/filter' },
};

describe('what stands around a program', () => {
  it('is nothing, if it has a user of its own and no limits', () => {
    expect(launch(PROGRAM, MACHINE)).toEqual({
      argv: ['/cache/abc', '-v', '--', 'a b'],
      bounds: [],
      group: null,
      tree: { kind: 'user', uid: 1_000_003 },
      ...{ isWrapped: false, filter: null, folder: '/jobs/1' },
      execution: { isolation: 'none', limits: {} },
    });
  });

  it('are its limits, each with what is done about it', () => {
    const limits = {
      files: 64,
      cpuTime: '1500ms',
      disk: 5_000,
      processes: 8,
      memory: 1 << 26,
      cpus: 0.5,
      output: 9,
    } as const;
    const { bounds, execution } = launch({ ...PROGRAM, limits }, MACHINE);
    expect(bounds).toEqual([
      { name: 'nofile', soft: 64, hard: 64 },
      { name: 'cpu', soft: 2, hard: 3 },
      { name: 'fsize', soft: 5_000, hard: 5_000 },
      { name: 'nproc', soft: 8, hard: 8 },
    ]);
    const how = Object.fromEntries(
      Object.entries(execution.limits).map(([name, limit]) => [name, limit!.how]),
    );
    expect(how).toEqual({
      ...{ files: 'enforced', cpuTime: 'approximated', disk: 'approximated', processes: 'enforced' },
      ...{ memory: 'approximated', cpus: 'absent', output: 'enforced' },
    });
    // Of a user with other processes, theirs would count.
    const alone = launch({ ...PROGRAM, limits, user: null }, { ...MACHINE, prlimit: null });
    expect(alone.execution.limits.processes).toEqual({ value: 8, how: 'absent' });
    expect(alone.execution.limits.files).toEqual({ value: 64, how: 'absent' });
    expect(alone.bounds).toEqual([]);
    // The launcher needs no tool for them.
    const launched = launch({ ...PROGRAM, limits }, { ...MACHINE, prlimit: null, launcher: '/launcher' });
    expect(launched.bounds).toEqual(bounds);
    expect(launched.execution).toEqual(execution);
  });

  it('are no higher limits than those of the worker', () => {
    const text =
      'Limit Soft Limit Hard Limit\nMax cpu time   unlimited   unlimited seconds\nMax open files   99   100   files\n';
    const hardLimits = { ...hardLimitsIn(text), nproc: 7, fsize: 9 };
    expect(hardLimits).toEqual({ nofile: 100, nproc: 7, fsize: 9 });
    const limits = { files: 500, processes: 8, disk: 10 };
    const { bounds, execution } = launch({ ...PROGRAM, limits }, { ...MACHINE, hardLimits });
    expect(bounds).toEqual([
      { name: 'nofile', soft: 100, hard: 100 },
      { name: 'fsize', soft: 9, hard: 9 },
      { name: 'nproc', soft: 7, hard: 7 },
    ]);
    expect(execution.limits).toMatchObject({
      files: { value: 100 },
      processes: { value: 7 },
      disk: { value: 10 },
    });
  });

  it('are limits of all of its processes together, where there are control groups', () => {
    const limits = { memory: 1 << 26, processes: 8, cpus: 0.5, files: 64 } as const;
    const all = { path: '/groups', controllers: new Set(['memory', 'pids', 'cpu'] as const) };
    const machine = { ...MACHINE, launcher: '/launcher', groups: { use: all } };
    const { group, execution } = launch({ ...PROGRAM, limits }, machine);
    expect(group).toEqual({
      ...{ 'memory.max': '67108864', 'memory.swap.max': '0', 'memory.oom.group': '1' },
      ...{ 'pids.max': '12', 'cpu.max': '50000 100000' },
    });
    expect(new Set(Object.values(execution.limits).map(({ how }) => how))).toEqual(new Set(['enforced']));
    // The worker's own user may move its processes into other groups, unless they cannot see these.
    const own = launch({ ...PROGRAM, user: null, limits }, machine).execution.limits;
    expect(own).toMatchObject({ memory: { how: 'approximated' }, cpus: { how: 'approximated' } });
    const apart = launch({ ...PROGRAM, user: null, limits, isolation: 'required' }, machine).execution.limits;
    expect(apart).toMatchObject({ memory: { how: 'enforced' }, processes: { how: 'enforced' } });
    // In namespaces alone they could mount them.
    const namespaces = { ...machine, bubblewrap: WITHOUT };
    const mounting = launch({ ...PROGRAM, user: null, limits, isolation: 'required' }, namespaces);
    expect(mounting.execution).toMatchObject({
      isolation: 'namespaces',
      limits: { memory: { how: 'approximated' }, processes: { how: 'approximated' } },
    });
    const theirs = launch({ ...PROGRAM, limits, isolation: 'required' }, namespaces);
    expect(theirs.execution.limits).toMatchObject({ memory: { how: 'enforced' } });
    // What the kernel does not offer is done as elsewhere.
    const some = { ...all, controllers: new Set(['pids'] as const) };
    const fewer = launch({ ...PROGRAM, user: null, limits }, { ...machine, groups: { use: some } });
    expect(fewer.group).toEqual({ 'pids.max': '12' });
    expect(fewer.execution.limits).toMatchObject({
      memory: { how: 'approximated' },
      cpus: { how: 'absent' },
    });
    expect(launch(PROGRAM, machine).group).toBeNull();
    // Without the launcher, a program would be itself before it is in its group.
    expect(launch({ ...PROGRAM, limits }, { ...machine, launcher: null }).group).toBeNull();
  });

  it('is a namespace of its own, with a first process that is not the program, if it has no user', () => {
    const { argv, tree, isWrapped } = launch({ ...PROGRAM, user: null }, MACHINE);
    expect(argv.slice(0, 7)).toEqual([
      '/usr/bin/unshare',
      '--pid',
      '--',
      '/bin/sh',
      '-c',
      '"$@"; exit $?',
      'sh',
    ]);
    expect([tree.kind, isWrapped]).toEqual(['namespace', true]);
    const bare = launch({ ...PROGRAM, user: null }, { ...MACHINE, ownNamespace: WITHOUT });
    expect([bare.argv[0], bare.tree.kind]).toEqual(['/cache/abc', 'group']);
    expect(bare.execution.notIsolated).toBe('Processes that leave their group may survive: it is not here');
  });

  it('is an empty root for a binary, and the machine to read for a command', () => {
    const binary = launch({ ...PROGRAM, isolation: 'auto' }, MACHINE);
    expect(binary).toMatchObject({
      folder: '/work',
      filter: '/filter',
      execution: { isolation: 'bubblewrap' },
    });
    expect(binary.argv.join(' ')).toMatch(
      /--ro-bind \/cache\/abc \/job .*--bind \/jobs\/1 \/work .*-- \/job -v -- a b$/,
    );
    expect(binary.argv.join(' ')).not.toContain('--ro-bind / /');
    const command = launch(
      { ...PROGRAM, isolation: 'required', needsMachine: true, file: '/bin/ls' },
      MACHINE,
    );
    // What is hidden is hidden before the folder of the job is put into it.
    expect(command.argv.join(' ')).toMatch(
      /--ro-bind \/ \/ .*--tmpfs \/jobs .*--bind \/jobs\/1 \/jobs\/1 .*-- \/bin\/ls /,
    );
    expect(command.folder).toBe('/jobs/1');
  });

  it('are namespaces without bubblewrap, which take a binary along', () => {
    const without = { ...MACHINE, bubblewrap: WITHOUT };
    const around = ['/usr/bin/unshare', '--user', '--', 'sh', '/jobs/1'];
    const rest = ['/usr/bin/setpriv', '/tmp /var/tmp /run /jobs'];
    const binary = launch({ ...PROGRAM, isolation: 'required' }, without);
    expect(binary.execution.isolation).toBe('namespaces');
    expect(binary.argv).toEqual([...around, '/cache/abc', ...rest, '/jobs/1/.program', '-v', '--', 'a b']);
    const command = launch({ ...PROGRAM, isolation: 'auto', needsMachine: true, file: '/bin/ls' }, without);
    expect(command.argv).toEqual([...around, '', ...rest, '/bin/ls', '-v', '--', 'a b']);
  });

  it('is told to be missing, or refused', () => {
    const why = 'bwrap: No permissions to create new namespace';
    const without = { ...MACHINE, bubblewrap: { why }, namespaces: WITHOUT };
    const { execution } = launch({ ...PROGRAM, isolation: 'auto' }, without);
    expect(execution).toEqual({
      ...{ isolation: 'none', limits: {} },
      notIsolated: `Isolation is unavailable: ${why}; it is not here`,
    });
    expect(() => launch({ ...PROGRAM, isolation: 'required' }, without)).toThrow('No permissions');
    expect(launch({ ...PROGRAM, isolation: 'none' }, without).execution).not.toHaveProperty('notIsolated');
  });
});

it('the stricter of two isolations counts, and the lower of two limits', () => {
  expect([stricter('none', 'auto'), stricter('required', 'none'), stricter('auto', 'auto')]).toEqual([
    ...['auto', 'required', 'auto'],
  ]);
  const lower = lowerLimits(
    { memory: 100, cpuTime: '90s', files: 5 },
    { memory: 200, cpuTime: '1m', disk: 7 },
  );
  expect(lower).toEqual({ memory: 100, cpuTime: '1m', files: 5, disk: 7 });
});

it.each([
  ['         0          0 4294967295', { first: 0x7000_0000, count: 0x0fff_0000 }],
  ['         0     100000      65536', { first: 20_000, count: 44_536 }],
  ['         0       1000          1', null],
])('in a container with the users %j, attempts have %j', (map, range) => {
  expect(rangeIn(map)).toEqual(range);
});

it('the filter of calls has an instruction for each of them, and jumps to its end', () => {
  for (const architecture of ['x64', 'arm64']) {
    const filter = seccompFilter(architecture)!;
    const count = filter.length / 8;
    expect(Number.isInteger(count)).toBe(true);
    // Every jump leads to the last instruction, which refuses.
    for (let at = 4; at < count - 2; at++) {
      expect(at + 1 + filter.readUInt8(at * 8 + 2)).toBe(count - 1);
    }
    expect(filter.readUInt32LE((count - 1) * 8 + 4)).toBe(0x00050001);
  }
  expect(seccompFilter('mips')).toBeNull();
});
