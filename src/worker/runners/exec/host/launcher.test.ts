import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { elfProblem } from '../../../../core/elf.js';
import { LauncherStarter } from './launcher.js';
import { launcherProgram } from './launcher-program.js';
import type { StartRequest } from './messages.js';

const { arch } = process;
const CAN_RUN = process.platform === 'linux' && (arch === 'x64' || arch === 'arm64');

let root: string;
let launcher: string;
let made = 0;

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'punctual-launcher-'));
  launcher = join(root, 'launcher');
  writeFileSync(launcher, launcherProgram(arch) ?? '', { mode: 0o700 });
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Ended {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly isRemoved: boolean;
  readonly folder: string;
}

function run(change: Partial<StartRequest>): Promise<Ended> {
  made += 1;
  const path = join(root, `job-${made}`);
  const request: StartRequest = {
    ...{
      type: 'start',
      id: `p${made}`,
      argv: ['/bin/sh', '-c', ':'],
      env: {},
      folder: { path, payload: 'null' },
    },
    ...{ filter: null, tree: { kind: 'group' }, bounds: [], prlimit: null, group: null, isWrapped: false },
    ...{
      timeoutMs: 60_000,
      graceMs: 0,
      resultBytes: 0,
      tailBytes: 0,
      outputBytes: 0,
      memory: null,
      disk: null,
      leaseMs: 0,
    },
    ...change,
  };
  return new Promise((resolve, reject) => {
    const text = { stdout: '', stderr: '' };
    let closed: Promise<unknown>;
    let removeFolder: () => Promise<boolean>;
    starter.start(request, {
      onStarted: (process) => {
        removeFolder = () => process.removeFolder();
        const ends = (['stdout', 'stderr'] as const).map((name) => {
          process[name].setEncoding('utf8').on('data', (piece: string) => {
            text[name] += piece;
          });
          return new Promise((end) => process[name].on('close', end));
        });
        closed = Promise.all(ends);
      },
      onFailed: (code, message) => reject(Object.assign(new Error(message), { code })),
      onExited: async (exitCode, signal) => {
        await closed;
        const folder = request.folder.path;
        resolve({ exitCode, signal, ...text, isRemoved: await removeFolder(), folder });
      },
    });
  });
}

const starter = {
  inner: undefined as LauncherStarter | undefined,
  start(...given: Parameters<LauncherStarter['start']>) {
    this.inner ??= new LauncherStarter(launcher, arch as 'x64', () => undefined);
    this.inner.start(...given);
  },
};

it.each(['x64', 'arm64'])('the launcher is a static program for %s', (architecture) => {
  const program = launcherProgram(architecture)!;
  expect(elfProblem(program, program.length, architecture)).toBeNull();
  expect(program.length).toBeLessThan(512);
});

it('there is none for other processors', () => {
  expect(launcherProgram('riscv64')).toBeNull();
});

describe.runIf(CAN_RUN)('the launcher', () => {
  it('has the bytes of the instructions that stand beside them', ({ skip }) => {
    const source = readFileSync(new URL('./launcher-program.ts', import.meta.url), 'utf8');
    const listing = [...source.matchAll(/^ {4}((?:[0-9a-f]{2} )+) +(\S+ +.*|syscall)$/gm)].filter(
      ([, bytes]) =>
        // Those of arm64 have four bytes each, and calls other registers.
        arch === 'x64' ? true : bytes!.trim().length === 11,
    );
    expect(listing.length).toBeGreaterThan(60);
    const dumped = disassembled(launcher);
    if (dumped === null) skip('there is no disassembler');
    for (const [bytes, mnemonic] of dumped!) {
      const line = listing.find(([, stated]) => stated!.trim() === bytes);
      expect(line?.[2], bytes).toMatch(new RegExp(`^${mnemonic}\\b`));
    }
  });

  it('passes on arguments and variables byte for byte, whatever is in them', async () => {
    const hostile = [
      '',
      ' ',
      `'"\`$(touch ${root}/broken)\\`,
      '; touch broken #',
      'two\nlines\r\n\t',
      '--',
      '-c',
      '\u{1F600} é \u0001\u007f',
      '%s%n\\0',
      'x'.repeat(100_000),
    ];
    const script = 'printf "%s\\0" "$@"; printf "%s\\0" "$A" "$B" >&2';
    const env = { A: hostile.join('|'), B: "'; exit 7 #" };
    const { exitCode, stdout, stderr } = await run({
      argv: ['/bin/sh', '-c', script, 'sh', ...hostile],
      env,
    });
    expect(exitCode).toBe(0);
    expect(stdout).toBe(hostile.map((text) => `${text}\0`).join(''));
    expect(stderr).toBe(`${env.A}\0${env.B}\0`);
    expect(existsSync(join(root, 'broken'))).toBe(false);
  });

  it('gives the variables that were asked for and no others', async () => {
    const { stdout } = await run({ argv: ['/usr/bin/env'], env: { ONE: '1' } });
    expect(stdout).toBe('ONE=1\n');
  });

  it('tells exit codes and signals exactly', async () => {
    for (const code of [0, 1, 127, 128, 137, 255]) {
      const { exitCode, signal } = await run({ argv: ['/bin/sh', '-c', `exit ${code}`] });
      expect([exitCode, signal]).toEqual([code, null]);
    }
    for (const name of ['TERM', 'KILL', 'SEGV', 'USR1']) {
      const { exitCode, signal } = await run({ argv: ['/bin/sh', '-c', `ulimit -c 0; kill -${name} $$`] });
      expect([exitCode, signal]).toEqual([null, `SIG${name}`]);
    }
  });

  it('makes the folder of the program, and removes it if nothing else is in it', async () => {
    const script = 'ls -lA; cat; pwd';
    const path = join(root, 'own');
    const folder = { path, payload: '{"a":"ä"}', token: 'secret' };
    const clean = await run({ argv: ['/bin/sh', '-c', script], env: { PATH: '/usr/bin:/bin' }, folder });
    expect(clean.stdout).toMatch(
      /drwx------ .* output\n-rw------- .* 10 .* payload.json\n-rw------- .* 6 .* token\n/,
    );
    expect(clean.stdout).toContain(`{"a":"ä"}${path}\n`);
    expect([clean.isRemoved, existsSync(path)]).toEqual([true, false]);
    const left = await run({ argv: ['/bin/sh', '-c', 'echo kept > output/file'], folder });
    expect(left.isRemoved).toBe(false);
    expect(readdirSync(join(path, 'output'))).toEqual(['file']);
    rmSync(path, { recursive: true });
  });

  it('removes nothing through what a program has put in place of its folders', async () => {
    const outside = join(root, 'outside');
    mkdirSync(outside);
    const script = `rmdir output; ln -s ${outside} output; rm payload.json; mkdir payload.json`;
    const { isRemoved } = await run({ argv: ['/bin/sh', '-c', script], env: { PATH: '/usr/bin:/bin' } });
    expect([isRemoved, statSync(outside).isDirectory()]).toEqual([false, true]);
  });

  it('passes on none of its own descriptors, and sets limits', async () => {
    const script =
      'for fd in 0 1 2 3 4 5 6 7 8; do [ -e /proc/$$/fd/$fd ] && echo $fd; done; ulimit -n; ulimit -f';
    const bounds = [
      { name: 'nofile', soft: 50, hard: 60 },
      { name: 'fsize', soft: 5 * 2 ** 32, hard: 5 * 2 ** 32 },
    ] as const;
    const { stdout } = await run({ argv: ['/bin/sh', '-c', script], bounds });
    expect(stdout).toBe(`0\n1\n2\n50\n${(5 * 2 ** 32) / 512}\n`);
  });

  it('has a program enter its control group before it is itself', async () => {
    // A plain file takes what the kernel would.
    const path = join(root, 'group');
    mkdirSync(path);
    writeFileSync(join(path, 'cgroup.procs'), '');
    const { stdout } = await run({
      group: { path, settings: {} },
      argv: ['/bin/cat', join(path, 'cgroup.procs')],
    });
    expect(stdout).toBe('0');
    const missing = run({ group: { path: join(root, 'no-group'), settings: {} } });
    await expect(missing).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('says why the kernel refuses a program, and goes on with others', async () => {
    const text = join(root, 'text');
    writeFileSync(text, 'echo a shell would run this', { mode: 0o700 });
    for (const [file, code] of [
      ['/nonexistent', 'ENOENT'],
      [root, 'EACCES'],
      [text, 'ENOEXEC'],
    ] as const) {
      await expect(run({ argv: [file] })).rejects.toMatchObject({ code });
    }
    await expect(run({ folder: { path: join(root, 'a', 'b'), payload: '1' } })).rejects.toMatchObject({
      code: 'ENOENT',
    });
    expect((await run({})).exitCode).toBe(0);
  });

  it('says so where the disk is too small for what a program is given', async ({ skip }) => {
    const small = join(root, 'small');
    mkdirSync(small);
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', small], { stdio: 'ignore' });
    } catch {
      skip('nothing can be mounted here');
    }
    try {
      const folder = { path: join(small, 'job'), payload: JSON.stringify('x'.repeat(100_000)) };
      await expect(run({ folder })).rejects.toMatchObject({ code: 'ENOSPC' });
    } finally {
      // The launcher closes what a start that has failed has left open with its next one.
      execFileSync('umount', ['-l', small]);
    }
  });

  it('leaves to Node what is too long for it', async () => {
    const payload = JSON.stringify('x'.repeat(17_000_000));
    const folder = { path: join(root, 'long'), payload };
    const { stdout, isRemoved } = await run({ argv: ['/usr/bin/wc', '-c'], folder });
    expect([Number(stdout), isRemoved]).toEqual([payload.length, true]);
    // Nobody would set the limits of this one.
    const bounds = [{ name: 'nofile', soft: 50, hard: 50 }] as const;
    await expect(run({ folder, bounds })).rejects.toMatchObject({ code: 'E2BIG' });
  });
});

/** The instructions of a program as a disassembler reads them; null if there is none. */
function disassembled(file: string): [bytes: string, mnemonic: string][] | null {
  try {
    const from = 64 + 3 * 56;
    const machine = arch === 'x64' ? 'i386:x86-64' : 'aarch64';
    const options = ['-D', '-b', 'binary', '-m', machine, '-M', 'intel', `--start-address=${from}`];
    const text = execFileSync(
      'objdump',
      arch === 'x64' ? [...options, file] : options.filter((o) => o !== '-M' && o !== 'intel').concat(file),
      {
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      },
    );
    return [...text.matchAll(/^ +[0-9a-f]+:\t((?:[0-9a-f]{2} )+) *\t(\S+)/gm)].map(([, bytes, mnemonic]) => [
      bytes!.trim(),
      // Another name of the same.
      mnemonic === 'je' ? 'jz' : mnemonic!,
    ]);
  } catch {
    return null;
  }
}
