import { readdirSync, readFileSync } from 'node:fs';

/** One of the numbered migrations that this program carries. */
interface Migration {
  readonly number: number;
  readonly name: string;
  /** The oldest program that can work on a database with this migration applied. */
  readonly oldestProgram: string;
  readonly sql: string;
}

const FOLDER = new URL('./migrations/', import.meta.url);
const FILE = /^(\d{3})-([a-z0-9-]+)\.sql$/;
const OLDEST = /^-- oldest-program: (\d+\.\d+\.\d+)$/m;

/** All migrations in order; a gap in the numbers or a missing header is a bug of ours. */
export function loadMigrations(): Migration[] {
  const files = readdirSync(FOLDER)
    .filter((file) => file.endsWith('.sql'))
    .sort();
  return files.map((file, index) => {
    const match = FILE.exec(file);
    const sql = readFileSync(new URL(file, FOLDER), 'utf8');
    const oldest = OLDEST.exec(sql);
    if (!match || !oldest || Number(match[1]) !== index + 1)
      throw new Error(`migration ${file} is malformed`);
    return { number: index + 1, name: match[2]!, oldestProgram: oldest[1]!, sql };
  });
}
