import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** The root of the repository, also from the compiled bench, which lies deeper. */
export const repository = findRoot(import.meta.dirname);

/** The folder of the bench's own package, where the peers are installed. */
export const benchFolder = join(repository, 'bench');

function findRoot(folder: string): string {
  return existsSync(join(folder, 'biome.json')) ? folder : findRoot(dirname(folder));
}
