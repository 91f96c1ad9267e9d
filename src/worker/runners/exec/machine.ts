import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { ControlGroups } from './control-groups.js';
import type { Bound } from './host/messages.js';
import { EMPTIED, NAMESPACE_FLAGS, NAMESPACE_SCRIPT } from './namespace-script.js';

/** What this machine offers to keep programs apart and to end them, found out by trying. */

/** How long an attempt may take before it counts as failed. */
const PATIENCE_MS = 5_000;
/** Users that nothing else has: beyond those of accounts, of their subordinates and of containers. */
const USERS = { first: 0x7000_0000, count: 0x0fff_0000 };
/** With fewer than this, users would be met again too soon. */
const LEAST_USERS = 1_000;
/** The accounts of the machine come first. */
const ACCOUNTS = 20_000;

/** A range of users, one for each attempt. */
export interface UserRange {
  readonly first: number;
  readonly count: number;
}

/** Limits of each process that only root may raise. */
export type HardLimits = Readonly<Partial<Record<Bound['name'], number>>>;

/** What can be used, or why not. */
export type Found<T> = { readonly use: T } | { readonly why: string };

/** What the machine offers. */
export interface Machine {
  /** The processor, in the words of Node. */
  readonly architecture: string;
  /** The words that run a command in a PID namespace, for the host itself. */
  readonly hostNamespace: Found<readonly string[]>;
  /** The words that do so for each program, where programs have no user of their own. */
  readonly ownNamespace: Found<readonly string[]>;
  /** A user for each attempt. */
  readonly users: Found<UserRange>;
  /** Where bubblewrap is, if it can be used. */
  readonly bubblewrap: Found<string>;
  /** The words that run the script for namespaces without bubblewrap, and where setpriv is. */
  readonly namespaces: Found<{ readonly words: readonly string[]; readonly setpriv: string }>;
  /** The file of the launcher, if it can be run; it is written into the folder of the worker. */
  readonly launcher: string | null;
  /** The control groups of attempts, which are made when the worker has its folder. */
  readonly groups: Found<ControlGroups>;
  /** Where prlimit is. */
  readonly prlimit: string | null;
  /** What the worker's own processes are limited to, and so the programs; nothing for what has no limit. */
  readonly hardLimits: HardLimits;
  /** Where setpriv is, if programs can be kept from gaining privileges. */
  readonly setpriv: string | null;
}

/** Finds out what works; takes some tens of milliseconds. */
export async function lookAtMachine(): Promise<Machine> {
  const { arch: architecture } = process;
  if (process.platform !== 'linux') {
    const none = { why: `there are no namespaces on ${process.platform}` };
    const found = {
      hostNamespace: none,
      ownNamespace: none,
      users: none,
      bubblewrap: none,
      namespaces: none,
    };
    return {
      ...{ architecture, ...found, launcher: null, groups: none },
      ...{ prlimit: null, hardLimits: {}, setpriv: null },
    };
  }
  const isRoot = process.getuid?.() === 0;
  const users: Found<UserRange> = isRoot ? await findUsers() : { why: 'the worker does not run as root' };
  const user = 'use' in users ? users.use.first : null;
  const [hostNamespace, ownNamespace, bubblewrap, namespaces, setpriv] = await Promise.all([
    tried('unshare', namespaceWords(isRoot), ['true']),
    tried('unshare', namespaceWords(false), ['true']),
    findBubblewrap(user),
    findNamespaces(user),
    tried('setpriv', ['--no-new-privs', '--'], ['true']),
  ]);
  return {
    ...{ architecture, hostNamespace, ownNamespace, users, bubblewrap, namespaces },
    launcher: null,
    groups: { why: 'they were not looked for' },
    prlimit: find('prlimit'),
    hardLimits: hardLimitsIn(ownLimits()),
    setpriv: 'use' in setpriv ? setpriv.use[0]! : null,
  };
}

/** As the kernel names them in `/proc`. */
const LIMIT_NAMES: Readonly<Record<Bound['name'], string>> = {
  cpu: 'Max cpu time',
  fsize: 'Max file size',
  nproc: 'Max processes',
  nofile: 'Max open files',
};

function ownLimits(): string {
  try {
    return readFileSync('/proc/self/limits', 'utf8');
  } catch {
    return '';
  }
}

/** The hard limits in a text as that of `/proc/self/limits`. */
export function hardLimitsIn(text: string): HardLimits {
  const found = Object.entries(LIMIT_NAMES).flatMap(([name, title]) => {
    const hard = new RegExp(`^${title} +\\S+ +(\\d+)`, 'm').exec(text)?.[1];
    return hard === undefined ? [] : [[name, Number(hard)]];
  });
  return Object.fromEntries(found);
}

function namespaceWords(isRoot: boolean): string[] {
  const user = isRoot ? [] : ['--user', '--map-current-user'];
  return [...user, '--pid', '--mount-proc', '--fork', '--kill-child', '--'];
}

/** Root may take any user that its own namespace of users has. */
async function findUsers(): Promise<Found<UserRange>> {
  const range = rangeIn(readFileSync('/proc/self/uid_map', 'utf8'));
  if (range === null) return { why: 'the container has too few users' };
  const error = await failureOf('/bin/sh', ['-c', ':'], range.first);
  return error === null ? { use: range } : { why: error };
}

/** The users of a map of users that attempts may have; null if it has too few. */
export function rangeIn(map: string): UserRange | null {
  const [inside, , count] = map.trim().split('\n').at(-1)!.trim().split(/\s+/).map(Number);
  const end = inside! + count!;
  if (end >= USERS.first + USERS.count) return USERS;
  const first = Math.max(inside!, ACCOUNTS);
  // The last ones of a range are often those of nobody.
  const free = end - first - 1_000;
  return free < LEAST_USERS ? null : { first, count: free };
}

async function findBubblewrap(user: number | null): Promise<Found<string>> {
  const path = find('bwrap');
  if (path === null) return { why: 'bubblewrap (bwrap) is not installed' };
  const words = ['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--new-session'];
  const folders = ['--cap-drop', 'ALL', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev'];
  const error = await failureOf(path, [...words, ...folders, '--', '/bin/true'], user);
  return error === null ? { use: path } : { why: error };
}

async function findNamespaces(user: number | null): Promise<Machine['namespaces']> {
  const [unshare, setpriv] = [find('unshare'), find('setpriv')];
  if (unshare === null || setpriv === null) return { why: 'unshare or setpriv is not installed' };
  const words = [unshare, ...NAMESPACE_FLAGS, '/bin/sh', '-c', NAMESPACE_SCRIPT, 'sh'];
  const folder = await mkdtemp(join(tmpdir(), 'punctual-try-'));
  try {
    if (user !== null) await chown(folder, user, user);
    const error = await failureOf(
      unshare,
      [...words.slice(1), folder, '', setpriv, EMPTIED.join(' '), 'true'],
      user,
    );
    return error === null ? { use: { words, setpriv } } : { why: error };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The whole words with the path of the tool, if a command runs with them. */
async function tried(
  tool: string,
  words: readonly string[],
  command: readonly string[],
): Promise<Found<readonly string[]>> {
  const path = find(tool);
  if (path === null) return { why: `${tool} is not installed` };
  const error = await failureOf(path, [...words, ...command], null);
  return error === null ? { use: [path, ...words] } : { why: error };
}

/** Where a tool is. */
function find(tool: string): string | null {
  const folders = (process.env.PATH ?? '').split(delimiter).concat('/usr/bin', '/bin', '/usr/sbin', '/sbin');
  return folders.map((folder) => join(folder || '.', tool)).find(isExecutable) ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What a command says when it fails; null if it does not. */
export function failureOf(
  path: string,
  args: readonly string[],
  user: number | null,
): Promise<string | null> {
  return new Promise((resolve) => {
    const as = user === null ? {} : { uid: user, gid: user };
    let child: ChildProcess;
    try {
      child = spawn(path, args, {
        ...as,
        cwd: '/',
        stdio: ['ignore', 'ignore', 'pipe'],
        timeout: PATIENCE_MS,
      });
    } catch (error) {
      resolve((error as Error).message);
      return;
    }
    let said = '';
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-500);
    });
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code, signal) => {
      resolve(code === 0 ? null : said.trim() || `${path} ended with ${signal ?? code}`);
    });
  });
}
