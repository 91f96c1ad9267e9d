import { readdirSync, readFileSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { processMark } from '../../../host/processes.js';
import type { UserRange } from './machine.js';

/**
 * What a worker that was killed may have left running. Usually nothing: its host ends with it, and the kernel ends everything
 * in the namespace of the host. But a host that hangs or was stopped does not notice, and without a namespace nothing ends by itself.
 *
 * Processes are known by more than their ids, which are given out again: the boot, the moment of their start, and the namespace.
 */

const HOST_FILE = 'host.json';
/** How long the kernel may take to end what was killed. */
const PATIENCE_MS = 5_000;

interface KnownProcess {
  readonly pid: number;
  readonly mark: string;
  readonly namespace: string | null;
}

/** Writes down the processes of a host: the one that was started, and the first one of its namespace. */
export function noteHost(folder: string, pid: number): void {
  const init = firstChildOf(pid);
  const known = [pid, ...(init === null ? [] : [init])].flatMap((each) => knownProcess(each) ?? []);
  writeFileSync(join(folder, HOST_FILE), JSON.stringify(known), { mode: 0o600 });
}

/** Forgets the processes of a host that has ended. */
export function forgetHost(folder: string): void {
  rmSync(join(folder, HOST_FILE), { force: true });
}

/** Ends what is still there of an earlier worker with this folder; resolves when it is gone. */
export async function endLeftovers(folder: string, jobs: string, users: UserRange | null): Promise<void> {
  const hosts = readKnown(join(folder, HOST_FILE));
  const owners = users === null ? new Set<number>() : ownersOf(jobs, users);
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const left = [...hosts.filter(isStillThere).map(({ pid }) => pid), ...processesOf(owners)];
    if (left.length === 0 || performance.now() > until) break;
    for (const pid of left) kill(pid);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  forgetHost(folder);
}

function readKnown(path: string): readonly KnownProcess[] {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as KnownProcess[];
  } catch {
    // There was none, or the worker was killed while it wrote.
    return [];
  }
}

function knownProcess(pid: number): KnownProcess | null {
  const mark = processMark(pid);
  return mark === null ? null : { pid, mark, namespace: namespaceOf(pid) };
}

/** A process that has the id by now, but another start or namespace, is somebody else's. */
function isStillThere({ pid, mark, namespace }: KnownProcess): boolean {
  return processMark(pid) === mark && namespaceOf(pid) === namespace;
}

function namespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}

function firstChildOf(pid: number): number | null {
  try {
    const [first] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
    return first ? Number(first) : null;
  } catch {
    return null;
  }
}

/** The users of the attempts whose folders are left; nobody else has them. */
function ownersOf(jobs: string, { first, count }: UserRange): Set<number> {
  const owners = new Set<number>();
  for (const part of listOf(jobs)) {
    for (const name of listOf(join(jobs, part))) {
      try {
        const { uid } = statSync(join(jobs, part, name));
        if (uid >= first && uid < first + count) owners.add(uid);
      } catch {
        // It was removed.
      }
    }
  }
  return owners;
}

function processesOf(owners: ReadonlySet<number>): number[] {
  if (owners.size === 0) return [];
  return listOf('/proc')
    .map(Number)
    .filter((pid) => {
      try {
        return (
          Number.isSafeInteger(pid) && owners.has(statSync(`/proc/${pid}`).uid) && processMark(pid) !== null
        );
      } catch {
        return false;
      }
    });
}

function listOf(path: string): string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It is gone.
  }
}
