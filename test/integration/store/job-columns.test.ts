import { afterAll, beforeAll, expect, it } from 'vitest';
import { columnsOf, type JobTable } from '../../../src/store/job-columns.js';
import { TestShard } from './test-shard.js';

let shard: TestShard;
let close: () => Promise<void>;
beforeAll(async () => {
  ({ shard, close } = await TestShard.open());
});
afterAll(() => close());

const TYPE = `format_type(a.atttypid, a.atttypmod)`;
const NAMES_OF_TYPES: Readonly<Record<string, string>> = { integer: 'int' };

/** The columns of a table in the database: name, type, and whether it may be null. */
async function stored(table: string): Promise<string[]> {
  const { rows } = await shard.pool.query(
    `SELECT a.attname AS name, ${TYPE} AS type, a.attnotnull AS required FROM pg_attribute a
     WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped`,
    [`punctual.${table}`],
  );
  return rows.map(({ name, type, required }) => line(name, NAMES_OF_TYPES[type] ?? type, !required)).sort();
}

const line = (name: string, type: string, nullable: boolean) => `${name} ${type}${nullable ? ' null' : ''}`;

function known(table: JobTable): string[] {
  const columns = columnsOf(table).map(({ name, type, nullIn }) => line(name, type, nullIn.includes(table)));
  return [...columns, ...(table === 'claims' ? ['job uuid'] : [])].sort();
}

it.each(['jobs', 'later', 'job_history', 'job_history_kept', 'claims'] as const)(
  'the table of columns knows every column of %s, and no other',
  async (table) => expect(known(table)).toEqual(await stored(table)),
);
