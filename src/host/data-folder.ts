import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Creates the data folder if it is missing; answers whether it was. A new one tells git to ignore it, because it holds a
 * database and a key. In a folder that was there before, it is for its owner to say what git ignores.
 */
export async function makeDataFolder(path: string, mode = 0o700): Promise<boolean> {
  const made = await mkdir(path, { recursive: true, mode });
  if (made === undefined) return false;
  await writeFile(join(path, '.gitignore'), '*\n');
  return true;
}
