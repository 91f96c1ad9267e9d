import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { LifeLine } from '../../../../test/hostile-program.js';
import type { Isolation } from '../../../core/job.js';
import { ExecHostProcess, type HostWrapping } from './exec-host-process.js';
import { launcherProgram } from './host/launcher-program.js';
import type { EndedMessage, StartRequest } from './host/messages.js';
import { launch } from './launch.js';
import { lookAtMachine, type Machine, type UserRange } from './machine.js';

/** The host itself, with programs of the shell, for each way to find the processes of a program. */

const IS_LINUX = process.platform === 'linux';
const WITHOUT = { why: 'not in this test' };
const APART = { bubblewrap: WITHOUT, namespaces: WITHOUT };

let machine: Machine;
let root: string;
/** The file of the launcher; null for a processor that has none. */
let launcher: string | null = null;
const hosts: ExecHostProcess[] = [];

beforeAll(async () => {
  machine = await lookAtMachine();
  root = mkdtempSync(join(tmpdir(), 'punctual-host-test-'));
  // Users of attempts must be able to get to their folders.
  chmodSync(root, 0o711);
  const program = launcherProgram(machine.architecture);
  if (program === null) return;
  launcher = join(root, 'launcher');
  writeFileSync(launcher, program, { mode: 0o700 });
});
afterAll(async () => {
  await Promise.all(hosts.map((host) => host.close()));
  rmSync(root, { recursive: true, force: true });
});

/** What a worker has whose machine offers this much. */
const KINDS = {
  user: () => ({ ...machine, ownNamespace: WITHOUT, ...APART }),
  namespace: () => ({ ...machine, users: WITHOUT, ...APART }),
  group: () => ({ ...machine, users: WITHOUT, ownNamespace: WITHOUT, ...APART }),
} as const;
type Kind = keyof typeof KINDS;

/** Why a kind cannot be tried on this machine; null if it can. */
function problem(kind: Kind): string | null {
  const { users, ownNamespace } = machine;
  if (kind === 'user' && 'why' in users) return users.why;
  if (kind === 'namespace' && 'why' in ownNamespace) return ownNamespace.why;
  return null;
}

type By = 'launcher' | 'Node';
const open = new Map<string, ExecHostProcess>();

/** A host that starts programs by the launcher, or by Node, as where there is none. */
function hostFor(kind: Kind, by: By = 'launcher'): ExecHostProcess {
  const key = `${kind} ${by}`;
  const known = open.get(key);
  if (known && !known.hasEnded) return known;
  const host = new ExecHostProcess(wrapping(kind, by), () => undefined);
  hosts.push(host);
  open.set(key, host);
  return host;
}

function wrapping(kind: Kind, by: By = 'launcher'): HostWrapping {
  const { hostNamespace } = machine;
  const namespace = kind !== 'group' && 'use' in hostNamespace ? hostNamespace.use : null;
  return { namespace, launcher: by === 'launcher' ? launcher : null, around: [] };
}

let made = 0;

interface Started {
  readonly ended: Promise<EndedMessage>;
  readonly lines: string[];
  stop(graceMs: number): void;
}

function start(
  kind: Kind,
  args: readonly string[],
  change: Partial<StartRequest> = {},
  host = hostFor(kind),
  isolation: Isolation = 'none',
): Started {
  const offered = isolation === 'none' ? KINDS[kind]() : { ...KINDS[kind](), namespaces: machine.namespaces };
  made += 1;
  const user = 'use' in offered.users ? offered.users.use.first + made : null;
  const folder = { path: join(root, `job-${made}`), payload: '{"n":1}', token: 't' };
  const launched = launch(
    {
      file: '/bin/sh',
      args,
      folder: folder.path,
      needsMachine: true,
      hidden: [],
      isolation,
      limits: {},
      user,
      filter: null,
    },
    offered,
  );
  expect(launched.tree.kind).toBe(kind);
  const lines: string[] = [];
  const request: StartRequest = {
    ...{
      type: 'start',
      id: `p${made}`,
      argv: launched.argv,
      tree: launched.tree,
      isWrapped: launched.isWrapped,
    },
    ...{
      env: { PATH: '/usr/bin:/bin' },
      folder,
      bounds: launched.bounds,
      prlimit: machine.prlimit,
      group: null,
    },
    ...{ timeoutMs: 60_000, graceMs: 5_000, resultBytes: 1_000, outputBytes: 10_000, tailBytes: 4_096 },
    ...{ filter: null, memory: null, disk: null, leaseMs: 10_000, ...change },
  };
  const ended = new Promise<EndedMessage>((resolve, reject) => {
    const onLines = (_: string, more: readonly string[]) => lines.push(...more);
    void host
      .ready()
      .then(() => host.start(request, { onLines, onEnded: resolve, onFailed: reject }), reject);
  });
  return { ended, lines, stop: (graceMs) => host.stop(request.id, graceMs) };
}

const WAYS = (['launcher', 'Node'] as const).flatMap((by) =>
  (['user', 'namespace', 'group'] as const).map((kind) => [kind, by] as const),
);

describe.runIf(IS_LINUX).each(WAYS)('programs known by their %s, started by %s', (kind, by) => {
  const shell = (script: string, change?: Partial<StartRequest>) =>
    start(kind, ['-c', script], change, hostFor(kind, by));
  const test = (title: string, work: () => Promise<void>) =>
    it(title, async ({ skip }) => {
      const why = problem(kind);
      if (why !== null) skip(why);
      await work();
    });

  test('tell their exit code and what they print, and read their payload', async () => {
    const { ended, lines } = shell('cat; echo; echo oops >&2; printf end; exit 3');
    const end = await ended;
    expect(end).toMatchObject({
      exitCode: 3,
      signal: null,
      by: null,
      stdout: '{"n":1}\nend',
      stderrTail: 'oops\n',
    });
    expect(lines.sort()).toEqual(['end', 'oops', '{"n":1}']);
  });

  test('are not the first process of a namespace, so that a signal to themselves ends them', async () => {
    for (const name of ['SEGV', 'TERM', 'KILL']) {
      const { exitCode, signal } = await shell(`kill -${name} $$; exit 0`).ended;
      expect(exitCode === null ? signal : exitCode).not.toBe(0);
      expect(exitCode === null || exitCode > 128).toBe(true);
    }
  });

  test('end with everything that they started, whatever became of its group, session and parent', async () => {
    const line = new LifeLine();
    const hidden = `setsid setsid sh -c 'trap "" TERM HUP; exec 3>"${line.path}"; echo up >&3; while :; do sleep 9; done'`;
    // Without a namespace and a user of its own, who has left group and session is not found.
    const script = kind === 'group' ? hidden.replace('setsid setsid ', '') : `env -i PATH="$PATH" ${hidden}`;
    const { ended, stop } = shell(`${script} & while :; do sleep 0.05; done`);
    await line.up.times(1);
    stop(50);
    const end = await ended;
    await line.gone;
    expect(end).toMatchObject({ by: 'stop', isWhole: kind !== 'group' });
  });

  test('leave nothing behind when they end by themselves', async () => {
    const line = new LifeLine();
    const script = `(exec 3>"${line.path}"; echo up >&3; exec sleep 1000) & while [ ! -e go ]; do sleep 0.05; done`;
    const { ended, lines } = shell(`pwd; ${script}; exit 0`);
    await line.up.times(1);
    await expect.poll(() => lines.length).toBe(1);
    writeFileSync(join(lines[0]!, 'go'), '');
    // Its pipes were open in the one that it left.
    expect(await ended).toMatchObject({ exitCode: 0, by: null });
    await line.gone;
  });

  test('get a TERM and time to end', async () => {
    const { ended, lines, stop } = shell(
      `trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done`,
    );
    await expect.poll(() => lines).toEqual(['ready']);
    stop(20_000);
    expect(await ended).toMatchObject({ exitCode: 7, by: 'stop', stdout: 'ready\nbye\n' });
  });

  test('are ended when the grace is over', async () => {
    const { ended, lines, stop } = shell(`trap '' TERM; echo ready; while :; do sleep 0.05; done`);
    await expect.poll(() => lines).toEqual(['ready']);
    stop(100);
    const end = await ended;
    expect(end.by).toBe('stop');
    expect(end.signal === 'SIGKILL' || end.exitCode === 137).toBe(true);
  });

  test('are ended by the host at their timeout, if the worker does not', async () => {
    const end = await shell('sleep 1000', { timeoutMs: 100, graceMs: 0 }).ended;
    expect(end.by).toBe('timeout');
  });

  test('may print without end: everything is read, and little is kept', async () => {
    const { ended, lines } = shell('head -c 100000000 /dev/zero | tr "\\0" x; echo; echo last');
    const end = await ended;
    expect(end).toMatchObject({ exitCode: 0, stdout: null, stdoutBytes: 100_000_006, isCut: true });
    expect(end.stdoutTail).toHaveLength(4_096);
    expect(end.stdoutTail.endsWith('x\nlast\n')).toBe(true);
    expect(lines.join('').length).toBeLessThan(80_000);
  });

  test('are ended when they use more memory or disk than they may', async () => {
    const memory = shell('head -c 300000000 /dev/zero | tail -c 300000000', { memory: 30_000_000 });
    expect((await memory.ended).by).toBe('memory');
    const disk = shell('head -c 30000000 /dev/zero > big; sleep 1000', { disk: 3_000_000 });
    expect((await disk.ended).by).toBe('disk');
  });
});

describe.runIf(IS_LINUX)('without bubblewrap, in namespaces', () => {
  const isolated = (script: string, change: Partial<StartRequest> = {}) => {
    const kind = problem('user') === null ? 'user' : 'namespace';
    return start(kind, ['-c', script], change, hostFor(kind), 'required');
  };
  const test = (title: string, work: () => Promise<void>) =>
    it(title, async ({ skip }) => {
      if ('why' in machine.namespaces) skip(machine.namespaces.why);
      await work();
    });

  test('programs write nowhere but into their folder and /tmp, and have no network and no capability', async () => {
    const script = `cat; touch own /tmp/own && echo wrote; for at in /dev/shm /var/tmp/../lib /etc /run /usr; do
      touch "$at/punctual-x" 2>/dev/null && echo "wrote $at"; done
      tail -n +3 /proc/net/dev | grep -v " 0 *0 *0" ; grep CapEff /proc/self/status; ls -d /proc/[0-9]* | wc -l; exit 3`;
    const { ended, lines } = isolated(script);
    expect(await ended).toMatchObject({ exitCode: 3, isWhole: true });
    expect(lines.slice(0, 3)).toEqual([
      '{"n":1}wrote',
      'CapEff:\t0000000000000000',
      expect.stringMatching(/^[1-9]$/),
    ]);
  });

  test('tools are those of the machine, whatever PATH the target gives', async () => {
    const { ended, lines } = isolated('echo "$PATH"', { env: { PATH: '/nonexistent' } });
    expect(await ended).toMatchObject({ exitCode: 0 });
    expect(lines).toEqual(['/nonexistent']);
  });

  test('programs get a TERM and time to end, and are ended with what they have hidden', async () => {
    const polite = isolated(`trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.05; done`);
    await expect.poll(() => polite.lines).toEqual(['ready']);
    polite.stop(20_000);
    expect(await polite.ended).toMatchObject({ exitCode: 7, by: 'stop', stdout: 'ready\nbye\n' });
    const rude = isolated(
      `setsid sh -c 'trap "" TERM; while :; do sleep 9; done' & trap '' TERM; echo ready; wait`,
    );
    await expect.poll(() => rude.lines).toEqual(['ready']);
    rude.stop(100);
    expect(await rude.ended).toMatchObject({ by: 'stop', isWhole: true });
  });
});

describe.runIf(IS_LINUX)('the host', () => {
  it('says so when a program cannot be started', async () => {
    const host = hostFor('group');
    await host.ready();
    const started = start('group', ['-c', ':'], { argv: ['/nonexistent'] }, host);
    await expect(started.ended).rejects.toMatchObject({ code: 'NOT_RUNNABLE' });
  });

  it('passes no descriptor on to programs but the usual three', async () => {
    const before = ['/bin/sh', '-c', 'exec 9</etc/passwd; exec "$@"', 'sh'];
    const host = new ExecHostProcess({ ...wrapping('group'), around: before }, () => undefined);
    onTestFinished(() => host.close());
    // What the shell opens to find the names is closed by then.
    const list = 'for each in /proc/$$/fd/*; do readlink "$each" >&2 && basename "$each"; done';
    const started = start('group', ['-c', list], {}, host);
    await started.ended;
    expect(started.lines.filter((line) => /^\d$/.test(line))).toEqual(['0', '1', '2']);
  });

  it.each<Kind>(['user', 'namespace', 'group'])(
    'ends its programs, known by their %s, with itself',
    async (kind) => {
      if (problem(kind) !== null) return;
      const host = new ExecHostProcess(wrapping(kind), () => undefined);
      const line = new LifeLine();
      const script = `trap "" TERM; exec 3>"${line.path}"; echo up >&3; while :; do sleep 9; done`;
      const { ended } = start(kind, ['-c', script], {}, host);
      await line.up.times(1);
      await host.close();
      await line.gone;
      await expect(ended).rejects.toMatchObject({ code: 'HOST_LOST' });
    },
  );

  it('lets a program open its output by name', async (context) => {
    if (launcher === null) return context.skip();
    for (const kind of ['user', 'namespace', 'group'] as const) {
      if (problem(kind) !== null) continue;
      const { ended } = start(kind, ['-c', 'echo out > /dev/stdout; echo err > /dev/stderr']);
      expect(await ended).toMatchObject({ exitCode: 0, stdout: 'out\n', stderrTail: 'err\n' });
    }
  });

  it('shows a program no process of another', async () => {
    if (problem('user') !== null || 'why' in machine.hostNamespace) return;
    const host = hostFor('user');
    const other = start('user', ['-c', 'echo up; sleep 1000; : what-others-must-not-see'], {}, host);
    await expect.poll(() => other.lines).toEqual(['up']);
    const list = 'cat /proc/[0-9]*/cmdline | tr "\\0" " " | grep -c what-others-[m]ust-not-see';
    const { ended, lines } = start('user', ['-c', list], {}, host);
    await ended;
    other.stop(0);
    await other.ended;
    expect(lines).toEqual(['0']);
  });

  it('ends a program that starts others faster than they are found, and stops whoever would end it', async () => {
    if (problem('user') !== null) return;
    const line = new LifeLine();
    // Each stops all others of its user, and goes on in a child with another process id.
    const rabbit = `exec 3>"${line.path}"; echo up >&3; i=0; run() { kill -STOP -1; i=$((i + 1)); [ $i -gt 2000 ] || run & }; run`;
    const { ended, stop } = start('user', ['-c', rabbit], {}, hostFor('user'));
    await line.up.times(1);
    stop(0);
    expect(await ended).toMatchObject({ isWhole: true });
    await line.gone;
  });

  it.each<Kind>(['user', 'namespace', 'group'])(
    'takes its programs along, known by their %s, if it is killed where it has no namespace',
    async (kind) => {
      if (problem(kind) !== null) return;
      const pids = join(root, 'host-pid');
      const around = ['/bin/sh', '-c', `echo $$ > ${pids}; exec "$@"`, 'sh'];
      const host = new ExecHostProcess({ namespace: null, launcher, around }, () => undefined);
      const line = new LifeLine();
      const script = `trap "" TERM; exec 3>"${line.path}"; echo up >&3; echo started; while :; do sleep 9; done`;
      const { ended, lines } = start(kind, ['-c', script], {}, host);
      const failed = expect(ended).rejects.toMatchObject({ code: 'HOST_LOST' });
      await expect.poll(() => lines).toEqual(['started']);
      process.kill(Number(readFileSync(pids, 'utf8')), 'SIGKILL');
      await failed;
      await line.gone;
    },
  );

  it.each<Kind>(['user', 'namespace', 'group'])(
    'is ended with its programs, known by their %s, when it hangs while one of them is to end',
    async (kind) => {
      if (problem(kind) !== null) return;
      const host = new ExecHostProcess(wrapping(kind), () => undefined, 200);
      const line = new LifeLine();
      const { ended, lines, stop } = start(
        kind,
        ['-c', `exec 3>"${line.path}"; echo up >&3; echo started; sleep 1000`],
        {},
        host,
      );
      const failed = expect(ended).rejects.toMatchObject({ code: 'HOST_LOST' });
      const { pid } = await host.ready();
      await expect.poll(() => lines).toEqual(['started']);
      for (const each of [pid, ...descendants(pid)]) {
        if (readFileSync(`/proc/${each}/cmdline`, 'utf8').includes('exec-host.js'))
          process.kill(each, 'SIGSTOP');
      }
      stop(0);
      await failed;
      await line.gone;
    },
  );

  it('goes on when there is no room for more programs, and fails those alone', async () => {
    if (machine.prlimit === null) return;
    for (const bound of ['--nofile=64:64', '--nofile=40:40']) {
      const around = [machine.prlimit, bound, '--'];
      const host = new ExecHostProcess({ namespace: null, launcher, around }, () => undefined);
      onTestFinished(() => host.close());
      const failures: string[] = [];
      const all = Array.from({ length: 24 }, () => {
        const started = start('group', ['-c', 'echo up; exec sleep 1000'], {}, host);
        started.ended.catch(({ code, message }) => failures.push(`${code} ${message}`));
        return started;
      });
      const up = () => all.filter(({ lines }) => lines.includes('up'));
      await expect.poll(() => up().length + failures.length).toBe(24);
      expect(up().length).toBeGreaterThan(0);
      expect(failures.length).toBeGreaterThan(0);
      for (const failure of failures) expect(failure).toMatch(/^NOT_RUNNABLE .*EMFILE/);
      const running = up();
      for (const { stop } of running) stop(0);
      for (const { ended } of running) expect(await ended).toMatchObject({ by: 'stop', signal: 'SIGKILL' });
      const after = await start('group', ['-c', 'echo again'], {}, host).ended;
      expect(after).toMatchObject({ exitCode: 0, stdout: 'again\n' });
    }
  });

  it('lets no program have more than the worker may, and as much as it may', async (context) => {
    if (machine.prlimit === null || launcher === null || problem('user') !== null) return context.skip();
    const around = [machine.prlimit, '--nofile=256:256', '--nproc=500:500', '--'];
    const host = new ExecHostProcess({ namespace: null, launcher, around }, () => undefined);
    onTestFinished(() => host.close());
    const run = (files: number, processes: number) => {
      const bounds = [
        { name: 'nofile', soft: files, hard: files },
        { name: 'nproc', soft: processes, hard: processes },
      ] as const;
      const script =
        'ulimit -n; ulimit -Hn; grep "Max processes" /proc/self/limits | tr -s " "; (true) && echo forked';
      return start('user', ['-c', script], { bounds }, host).ended;
    };
    expect((await run(200, 50)).stdout).toBe('200\n200\nMax processes 50 50 processes \nforked\n');
    expect((await run(256, 500)).exitCode).toBe(0);
    // It is one process itself, and so can start no other.
    expect((await run(200, 1)).stdout).toBe('200\n200\n');
    for (const [files, processes] of [
      [300, 50],
      [200, 501],
    ] as const)
      await expect(run(files, processes)).rejects.toMatchObject({ message: expect.stringMatching(/EPERM/) });
  });

  /** A host without a namespace, whose launchers can be found. */
  async function hostWithLaunchers() {
    const host = new ExecHostProcess({ namespace: null, launcher, around: [] }, () => undefined);
    onTestFinished(() => host.close());
    const { pid } = await host.ready();
    const isLauncher = (each: number) => {
      // The first process of a namespace may show nobody its file.
      const words = readFileSync(`/proc/${each}/cmdline`, 'utf8');
      return words === `${launcher}\0`;
    };
    return { host, launchers: () => descendants(pid).filter(isLauncher) };
  }

  it('misses no launcher that has nothing to do', async (context) => {
    if (launcher === null) return context.skip();
    const { host, launchers } = await hostWithLaunchers();
    const long = start('group', ['-c', 'echo up; exec sleep 1000'], {}, host);
    await expect.poll(() => long.lines).toEqual(['up']);
    const busy = launchers();
    await start('group', ['-c', ':'], {}, host).ended;
    const [idle] = launchers().filter((each) => !busy.includes(each));
    process.kill(idle!, 'SIGKILL');
    await expect.poll(launchers).toEqual(busy);
    expect(await start('group', ['-c', 'exit 5'], {}, host).ended).toMatchObject({ exitCode: 5 });
    long.stop(0);
    expect(await long.ended).toMatchObject({ by: 'stop' });
  });

  it('fails the program of a launcher that is lost alone, if all of its processes can be found', async (context) => {
    if (launcher === null || problem('user') !== null) return context.skip();
    const { host, launchers } = await hostWithLaunchers();
    const other = start('user', ['-c', 'echo up; exec sleep 1000'], {}, host);
    await expect.poll(() => other.lines).toEqual(['up']);
    const [theirs] = launchers();
    const line = new LifeLine();
    const script = `setsid sh -c 'trap "" TERM; exec 3>"${line.path}"; echo up >&3; sleep 1000' & wait`;
    const { ended } = start('user', ['-c', script], {}, host);
    await line.up.times(1);
    process.kill(launchers().find((each) => each !== theirs)!, 'SIGKILL');
    expect(await ended).toMatchObject({ signal: 'SIGKILL', isWhole: true, hasFolder: true });
    await line.gone;
    other.stop(0);
    expect(await other.ended).toMatchObject({ by: 'stop' });
  });

  it('keeps few zombies, whatever programs leave behind', async () => {
    const host = hostFor('user');
    if (problem('user') !== null) return;
    const orphan = 'i=0; while [ $i -lt 40 ]; do (true &) ; i=$((i + 1)); done';
    await start('user', ['-c', orphan], {}, host).ended;
    const { first } = (machine.users as { readonly use: UserRange }).use;
    // Whatever is left of the user has ended, and waits to be reaped.
    const left = readdirSync('/proc').filter((pid) => ownerOf(pid) === first + made);
    expect(left.length).toBeLessThan(5);
  });
});

function ownerOf(pid: string): number | null {
  return statSync(join('/proc', pid), { throwIfNoEntry: false })?.uid ?? null;
}

function descendants(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean);
  return children.flatMap((child) => [Number(child), ...descendants(Number(child))]);
}
