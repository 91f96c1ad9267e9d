import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The root of the repository, also from the compiled harness, which lies deeper. */
export const repository = findRoot(import.meta.dirname);

function findRoot(folder: string): string {
  return existsSync(join(folder, 'biome.json')) ? folder : findRoot(dirname(folder));
}
