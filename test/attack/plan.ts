import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Attack } from './attack.js';

/** Loads every attack there is. */
export async function loadAttacks(): Promise<Attack[]> {
  const folder = join(import.meta.dirname, 'attacks');
  const files = readdirSync(folder).filter((name) => /^[a-z-]+\.[jt]s$/.test(name));
  const modules = await Promise.all(
    files.sort().map((name) => import(pathToFileURL(join(folder, name)).href) as Promise<{ attack: Attack }>),
  );
  return modules.map(({ attack }) => attack);
}

/** Those of the given kinds; throws when there is no such kind. */
export function attacksOf(all: readonly Attack[], kinds: readonly string[]): Attack[] {
  for (const kind of kinds) {
    if (!all.some((attack) => attack.kind === kind)) {
      throw new Error(
        `There is no attack ${kind}. There are: ${all.map((attack) => attack.kind).join(', ')}.`,
      );
    }
  }
  return kinds.length === 0 ? [...all] : all.filter(({ kind }) => kinds.includes(kind));
}
