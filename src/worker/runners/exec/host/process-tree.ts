import { spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import type { Tree } from './messages.js';

/**
 * Finding and ending all processes of one program. A process may leave its group and its session, and outlive its parent; what it
 * cannot leave is its user, if nobody else has that, and its PID namespace.
 */

/** How often what is left is looked for again before everything of the user is ended at once. */
const ROUNDS = 5;
/** How long what was killed is waited for: the kernel takes a while to give large memory back, and a call to a dead disk may hang. */
const PATIENCE_MS = 10_000;
/** How long the process may take that ends all others of its user; these could stop it. */
const ENDER_MS = 500;
/** What is not seen for want of room to look is not gone. */
const NO_ROOM: ReadonlySet<string | undefined> = new Set(['EMFILE', 'ENFILE', 'ENOMEM']);
/** Other systems than Linux have no list of processes that can be read. */
const HAS_LIST = existsSync('/proc/self/stat');

/** The processes of a user. The owner of the folder in `/proc` cannot be hidden, unlike that of the files in it. */
function processesOfUser(uid: number): number[] {
  return allProcesses().filter((pid) => {
    try {
      if (statSync(`/proc/${pid}`).uid !== uid) return false;
    } catch {
      return false;
    }
    return isAlive(pid);
  });
}

function allProcesses(): number[] {
  return readdirSync('/proc')
    .map(Number)
    .filter((pid) => Number.isSafeInteger(pid) && pid > 1 && pid !== process.pid);
}

/** The fields of `/proc/PID/stat` behind the name, which may hold anything; null if there is no such process. */
function statOf(pid: number): readonly string[] | null {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return text.slice(text.lastIndexOf(')') + 2).split(' ');
  } catch (error) {
    if (NO_ROOM.has((error as NodeJS.ErrnoException).code)) throw error;
    return null;
  }
}

/** What has ended and was not reaped yet runs nothing. */
export function isAlive(pid: number): boolean {
  const state = statOf(pid)?.[0];
  return state !== undefined && state !== 'Z' && state !== 'X';
}

/** The first child of a process. */
function firstChildOf(pid: number): number | null {
  try {
    const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    return first ? Number(first) : null;
  } catch {
    return null;
  }
}

/** The processes of a tree that can be found: those of the user, or those below the first one, or those of its session. */
export function processesOf(tree: Tree, first: number): number[] {
  return lookFor(tree, first) ?? [];
}

/** Null if they cannot be looked for now. */
function lookFor(tree: Tree, first: number): number[] | null {
  try {
    return listOf(tree, first);
  } catch {
    return null;
  }
}

function listOf(tree: Tree, first: number): number[] {
  if (tree.kind === 'user') return processesOfUser(tree.uid);
  if (tree.kind === 'namespace') return descendantsOf(first);
  if (!HAS_LIST) return isGroup(first) ? [-first] : [];
  return allProcesses().filter((pid) => {
    const fields = statOf(pid) ?? [];
    // Its group or its session.
    return (fields[2] === String(first) || fields[3] === String(first)) && isAlive(pid);
  });
}

function isGroup(first: number): boolean {
  try {
    return process.kill(-first, 0);
  } catch {
    return false;
  }
}

function descendantsOf(first: number): number[] {
  const parents = allProcesses().map((pid) => ({ pid, parent: Number(statOf(pid)?.[1] ?? -1) }));
  const found = new Set([first]);
  for (let before = 0; before < found.size; ) {
    before = found.size;
    for (const { pid, parent } of parents) if (found.has(parent)) found.add(pid);
  }
  return [...found].filter(isAlive);
}

/**
 * Asks a program to end, and what it started in its process group. What stands around it is left out: a TERM would end some of
 * these tools at once, and with them the program, and others would not pass it on.
 */
export function terminate(tree: Tree, first: number, isWrapped: boolean): void {
  if (!isWrapped) {
    signal(-first, 'SIGTERM');
    return;
  }
  // The tool, the first process of its PID namespace, and the program.
  const init = firstChildOf(first);
  const program = init === null ? null : firstChildOf(init);
  if (program === null) return;
  const group = groupOf(program);
  for (const pid of processesOf(tree, first)) {
    if (pid !== first && pid !== init && groupOf(pid) === group) signal(pid, 'SIGTERM');
  }
}

function groupOf(pid: number): string | undefined {
  return statOf(pid)?.[2];
}

/** How the processes of a program ended. */
export interface TreeEnd {
  /** Whether there were any. */
  readonly hadProcesses: boolean;
  /** Whether all are known to be gone. */
  readonly isWhole: boolean;
}

/** Ends every process of a program at once; resolves when none is left. */
export async function endTree(tree: Tree, first: number): Promise<TreeEnd> {
  const until = performance.now() + PATIENCE_MS;
  for (let round = 0; ; round++) {
    const found = lookFor(tree, first);
    if (found?.length === 0) return { hadProcesses: round > 0, isWhole: tree.kind !== 'group' };
    if (performance.now() > until) return { hadProcesses: true, isWhole: false };
    if (tree.kind !== 'user') signal(-first, 'SIGKILL');
    for (const pid of found ?? []) signal(pid, 'SIGKILL');
    // Something starts processes faster than they are found.
    if (tree.kind === 'user' && round >= ROUNDS) await endUser(tree.uid);
    await pause(Math.min(round, ROUNDS));
  }
}

/** The kernel ends all processes of a user in one step, if one of them asks. */
function endUser(uid: number): Promise<void> {
  return new Promise((resolve) => {
    const options = {
      ...{ uid, gid: uid, env: {}, stdio: 'ignore' as const },
      ...{ timeout: ENDER_MS, killSignal: 'SIGKILL' as const },
    };
    try {
      const child = spawn('/bin/sh', ['-c', 'kill -KILL -1'], options);
      child.on('error', () => resolve());
      child.on('exit', () => resolve());
    } catch {
      // There is no room for it now; the next round tries again.
      resolve();
    }
  });
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It is gone.
  }
}

/** The kernel needs a moment to end what was killed. */
function pause(round: number): Promise<void> {
  return new Promise((resolve) => {
    if (round === 0) setImmediate(resolve);
    else setTimeout(resolve, 2 ** round);
  });
}
