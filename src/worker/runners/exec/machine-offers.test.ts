import { describe, expect, it } from 'vitest';
import type { Machine } from './machine.js';
import { lookForControlGroups, offeredBy } from './machine-offers.js';

const MISSING = { why: 'it is not here' };
const NOTHING: Machine = {
  architecture: 'mips',
  ...{
    hostNamespace: MISSING,
    ownNamespace: MISSING,
    users: MISSING,
    bubblewrap: MISSING,
    namespaces: MISSING,
  },
  ...{ launcher: null, groups: MISSING, prlimit: null, hardLimits: {}, setpriv: null },
};

describe('what a machine offers to programs', () => {
  it('is all of it', () => {
    const machine: Machine = {
      ...NOTHING,
      architecture: 'x64',
      bubblewrap: { use: '/usr/bin/bwrap' },
      users: { use: { first: 1, count: 9 } },
      hostNamespace: { use: ['unshare'] },
    };
    const offers = offeredBy(machine, { use: '/sys/fs/cgroup/punctual' });
    expect(offers.map(({ status, detail }) => [status, detail])).toEqual([
      ['ok', 'none, bubblewrap'],
      ['ok', 'whole, by users of their own and PID namespaces'],
      [
        'ok',
        'each process by rlimits, counts by users; memory, processes and cpus by control groups below /sys/fs/cgroup/punctual',
      ],
    ]);
  });

  it('is nothing, and each has advice', () => {
    const offers = offeredBy(NOTHING, MISSING);
    expect(offers.map(({ status }) => status)).toEqual(['warn', 'warn', 'ok']);
    for (const { detail, advice } of offers) {
      expect(detail).toContain('it is not here');
      expect(advice).toBeTruthy();
    }
  });

  it('is isolation by namespaces, where bubblewrap is missing', () => {
    const namespaces = { use: { words: ['unshare'], setpriv: 'setpriv' } };
    const [levels] = offeredBy({ ...NOTHING, namespaces }, MISSING);
    expect(levels).toMatchObject({
      status: 'ok',
      detail: 'none, namespaces; not bubblewrap: it is not here',
    });
  });
});

it('control groups that are switched off or no groups are not offered', async () => {
  expect(await lookForControlGroups('off')).toEqual({ why: 'they are switched off' });
  expect(await lookForControlGroups('/proc')).toHaveProperty('why');
});
