import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { isAbsolute, join, relative } from 'node:path';
import { messageOf } from '../../../core/errors.js';
import { endGroup } from './host/control-group.js';
import { type Found, failureOf } from './machine.js';

/**
 * Control groups of version 2, in which the kernel keeps limits of all processes of an attempt together. A worker uses a group that was
 * given to it: the one that the operator names, or its own, if nothing else runs in it. Below it, it has one of its own, and below that each
 * attempt has one while it runs.
 *
 * The kernel lets no group have both processes and groups with limits, so that a worker in its own group first moves into a group below.
 */

/** What the kernel can keep for attempts. */
export type Controller = 'memory' | 'pids' | 'cpu';
/** All of them. */
export const CONTROLLERS: readonly Controller[] = ['memory', 'pids', 'cpu'];
/** Where a worker goes that leaves its group to its attempts. */
const WORKER_GROUP = 'punctual-worker';
const ATTEMPTS_PREFIX = 'punctual-attempts-';

/** A group below which attempts may have theirs. */
export interface ControlGroups {
  /** The folder of the worker's groups. */
  readonly path: string;
  /** What can be limited there. */
  readonly controllers: ReadonlySet<Controller>;
}

/** What is known of the machine. */
interface Surroundings {
  /** The text of `/proc/self/mountinfo`. */
  readonly mounts: string;
  /** The text of `/proc/self/cgroup`. */
  readonly own: string;
  readonly pid: number;
}

/**
 * Makes the groups of a worker, and ends and removes what an earlier one has left in them. `setting` is the group that the operator names,
 * empty for the worker's own, and `off` for none; `name` tells the workers of a machine apart.
 */
export async function openControlGroups(
  setting: string,
  name: string,
  surroundings = look(),
): Promise<Found<ControlGroups>> {
  if (setting === 'off') return { why: 'control groups are switched off' };
  if (surroundings === null) return { why: 'there are no control groups on this system' };
  const base = baseOf(setting, surroundings);
  if ('why' in base) return base;
  try {
    return { use: await openBelow(base.use, name, surroundings.pid) };
  } catch (error) {
    return { why: `the control group ${base.use} cannot be used: ${messageOf(error)}` };
  }
}

/** Ends and removes what is left of the worker's groups. */
export async function closeControlGroups({ path }: ControlGroups): Promise<void> {
  await endGroup(path);
}

function look(): Surroundings | null {
  try {
    const [mounts, own] = ['mountinfo', 'cgroup'].map((name) => readFileSync(`/proc/self/${name}`, 'utf8'));
    return { mounts: mounts!, own: own!, pid: process.pid };
  } catch {
    return null;
  }
}

/** The folder of the group that may be used. */
export function baseOf(
  setting: string,
  { mounts, own }: Pick<Surroundings, 'mounts' | 'own'>,
): Found<string> {
  if (isAbsolute(setting)) {
    return isGroup(setting) ? { use: setting } : { why: `${setting} is no control group of version 2` };
  }
  if (setting !== '') return { why: `the control group must be a whole path or \`off\`, not ${setting}` };
  const mount = mountOf(mounts);
  if (mount === null) return { why: 'no control groups of version 2 are mounted' };
  const path = /^0::(.*)$/m.exec(own)?.[1];
  if (path === undefined) return { why: 'the worker is in no control group of version 2' };
  const below = relative(mount.root, path);
  if (below.startsWith('..')) return { why: 'the control group of the worker cannot be seen' };
  return { use: join(mount.at, below) };
}

/** Where groups of version 2 are mounted, and which of them is the topmost there. */
function mountOf(mounts: string): { root: string; at: string } | null {
  for (const line of mounts.split('\n')) {
    const [before, after] = line.split(' - ');
    const [, , , root, at] = before!.split(' ');
    if (after?.startsWith('cgroup2 ') && root !== undefined && at !== undefined) return { root, at };
  }
  return null;
}

function isGroup(path: string): boolean {
  return existsSync(join(path, 'cgroup.procs')) && existsSync(join(path, 'cgroup.subtree_control'));
}

async function openBelow(base: string, name: string, pid: number): Promise<ControlGroups> {
  const path = join(base, `${ATTEMPTS_PREFIX}${name}`);
  await endGroup(path);
  await leaveTo(base, pid);
  const given = enable(base);
  mkdirSync(path, { recursive: true });
  const controllers = new Set(enable(path).filter((each) => given.includes(each)));
  const why = await whyNotEntered(path);
  if (why === null) return { path, controllers };
  await endGroup(path);
  throw new Error(why);
}

/**
 * Why no program can enter a group below this one; null if it can. The kernel lets a process go from one group to another only if its user
 * may write to what both are below, too, so that owning a group is not enough.
 */
export async function whyNotEntered(path: string): Promise<string | null> {
  const trial = join(path, `punctual-trial-${process.pid}`);
  mkdirSync(trial);
  try {
    const said = await failureOf('/bin/sh', ['-c', 'echo 0 > "$1/cgroup.procs"', 'sh', trial], null);
    return said && `programs cannot enter groups below it, as its user may not move them there: ${said}`;
  } finally {
    await endGroup(trial);
  }
}

/** A group with other processes is not there for the attempts alone, and they are not to be moved. */
async function leaveTo(base: string, pid: number): Promise<void> {
  const inside = wordsOf(join(base, 'cgroup.procs')).map(Number);
  if (inside.some((each) => each !== pid)) throw new Error('other processes run in it');
  if (inside.length === 0) return;
  const own = join(base, WORKER_GROUP);
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, 'cgroup.procs'), String(pid));
}

/** Has a group limit those below it, as far as it can; answers with what it limits then. */
function enable(path: string): Controller[] {
  const offered = wordsOf(join(path, 'cgroup.controllers'));
  const file = join(path, 'cgroup.subtree_control');
  for (const each of CONTROLLERS.filter((name) => offered.includes(name) && !wordsOf(file).includes(name))) {
    // One by one: where one is refused, the others may not be.
    try {
      writeFileSync(file, `+${each}`);
    } catch {
      // It is not among the words that are read now.
    }
  }
  const enabled = wordsOf(file);
  return CONTROLLERS.filter((each) => enabled.includes(each));
}

function wordsOf(file: string): string[] {
  return readFileSync(file, 'utf8').split(/\s+/).filter(Boolean);
}
