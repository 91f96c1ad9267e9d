import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The files of the dashboard, as the build has left them: small enough to be kept in memory, so that serving waits for no disk. */

/** How a file is stored besides as it is, by the extension that the build adds. */
const COMPRESSED = { br: '.br', gzip: '.gz' } as const;

/** A way in which a file is compressed. */
export type Compression = keyof typeof COMPRESSED;

/** One file. */
export interface PageFile {
  readonly bytes: Buffer;
  /** The same, compressed; only where that is smaller. */
  readonly compressed: ReadonlyMap<Compression, Buffer>;
  /** With the dot; small letters. */
  readonly extension: string;
  /** Changes with the content. */
  readonly hash: string;
}

/** The folder of the built dashboard: below `dist`, wherever this module runs from. */
export const DASHBOARD_FOLDER = fileURLToPath(new URL('../../dist/dashboard/', import.meta.url));

/** All files of a folder by their paths with `/`; null if there is no such folder. */
export function readPageFiles(folder: string): ReadonlyMap<string, PageFile> | null {
  let found: string[];
  try {
    found = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => relative(folder, join(entry.parentPath, entry.name)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  const all = new Set(found);
  const endings: readonly string[] = Object.values(COMPRESSED);
  const files = new Map<string, PageFile>();
  for (const path of found) {
    const ending = extname(path);
    if (endings.includes(ending) && all.has(path.slice(0, -ending.length))) continue;
    const bytes = readFileSync(join(folder, path));
    const compressed = new Map<Compression, Buffer>();
    for (const [name, added] of Object.entries(COMPRESSED)) {
      if (all.has(path + added))
        compressed.set(name as Compression, readFileSync(join(folder, path + added)));
    }
    const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
    files.set(path.split(sep).join('/'), { bytes, compressed, extension: ending.toLowerCase(), hash });
  }
  return files;
}
