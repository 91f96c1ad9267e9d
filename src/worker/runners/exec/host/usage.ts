import { type Dir, type Dirent, lstatSync, opendirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** What programs use, as it can be measured from outside. It is measured now and then, so that peaks may be missed. */

/** The most entries of a folder that are looked at in one measurement. */
const MOST_ENTRIES = 20_000;

/** The memory of processes, where what several share counts in parts. */
export function memoryBytes(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + residentBytes(pid), 0);
}

function residentBytes(pid: number): number {
  try {
    const text = readFileSync(`/proc/${pid}/status`, 'utf8');
    const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(text)?.[1] ?? 0);
    // Files that are mapped belong to nobody in particular; what was swapped out is used all the same.
    return (of('RssAnon') + of('RssShmem') + of('VmSwap')) * 1_024;
  } catch {
    return 0;
  }
}

/** The bytes below a folder, counted until there are more than `enough`. Links are not followed. */
export function diskBytes(folder: string, enough: number): number {
  let bytes = 0;
  let entries = 0;
  const folders = [folder];
  for (let path = folders.pop(); path !== undefined; path = folders.pop()) {
    for (const entry of entriesOf(path)) {
      entries += 1;
      if (entries > MOST_ENTRIES) return Number.POSITIVE_INFINITY;
      if (bytes > enough) return bytes;
      const at = join(path, entry.name);
      if (entry.isDirectory()) folders.push(at);
      else bytes += sizeOf(at);
    }
  }
  return bytes;
}

/** The entries one by one: a program may make a folder with more of them than fit into the memory of the host. */
function* entriesOf(path: string): Generator<Dirent> {
  let folder: Dir | undefined;
  try {
    folder = opendirSync(path);
    for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) yield entry;
  } catch {
    // It was removed, or cannot be read.
  } finally {
    folder?.closeSync();
  }
}

function sizeOf(path: string): number {
  try {
    return lstatSync(path).blocks * 512;
  } catch {
    return 0;
  }
}
