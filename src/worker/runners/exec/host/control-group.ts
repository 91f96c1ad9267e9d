import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The control group of one attempt: made before its program starts, ended and removed behind it. */

/** How long what was killed is waited for. */
const PATIENCE_MS = 5_000;
const ROUND_MS = 5;

/** What is written into the files of a group. */
export type GroupSettings = Readonly<Record<string, string>>;

/** A group that is to be made. */
export interface GroupParts {
  readonly path: string;
  readonly settings: GroupSettings;
}

/** Makes a group; throws if the kernel refuses one of its settings. */
export function makeGroup({ path, settings }: GroupParts): void {
  mkdirSync(path);
  for (const [file, value] of Object.entries(settings)) {
    // Without the controller of swap there is nothing that could be swapped out.
    const isOptional = file === 'memory.swap.max';
    try {
      writeFileSync(join(path, file), value, { flag: 'r+' });
    } catch (error) {
      if (!isOptional) throw error;
    }
  }
}

/** How often the kernel has ended a process of the group because its memory was used up. */
export function oomKillsIn(path: string): number {
  return Number(valueIn(join(path, 'memory.events'), 'oom_kill') ?? 0);
}

/** Ends everything in a group and in those below it, and removes them; resolves with whether they are gone. */
export async function endGroup(path: string): Promise<boolean> {
  const until = performance.now() + PATIENCE_MS;
  while (!isRemoved(path)) {
    if (performance.now() > until) return false;
    kill(path);
    await new Promise((resolve) => setTimeout(resolve, ROUND_MS));
  }
  return true;
}

/** Those below come first: the kernel removes none that has others. */
function isRemoved(path: string): boolean {
  for (const below of groupsBelow(path)) isRemovedAlone(below);
  return isRemovedAlone(path);
}

function isRemovedAlone(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
}

function kill(path: string): void {
  try {
    writeFileSync(join(path, 'cgroup.kill'), '1', { flag: 'r+' });
  } catch {
    // Kernels before 5.14 have no such file.
    for (const each of [path, ...groupsBelow(path)]) killProcesses(each);
  }
}

function killProcesses(path: string): void {
  for (const word of textOf(join(path, 'cgroup.procs')).split('\n')) {
    try {
      if (Number(word) > 0) process.kill(Number(word), 'SIGKILL');
    } catch {
      // It is gone.
    }
  }
}

function groupsBelow(path: string): string[] {
  try {
    const found = readdirSync(path, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return found.map(({ name }) => join(path, name)).flatMap((each) => [...groupsBelow(each), each]);
  } catch {
    return [];
  }
}

function valueIn(file: string, name: string): string | undefined {
  const lines = textOf(file).split('\n');
  return lines.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1);
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}
