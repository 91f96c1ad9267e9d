import type pg from 'pg';
import type { Pool, Queryable } from '../../../src/store/database.js';
import { TENANT } from './test-shard.js';

/** A statement as a function of the store runs it. */
export interface RecordedStatement {
  readonly name: string;
  readonly text: string;
}

/** The job of every key that is searched for. */
export const JOB_OF_KEYS = '0198c0de-0000-7000-8000-00000000cafe';

/**
 * Runs functions of the store against nothing and keeps the statements that they would have run, so that a test
 * can explain exactly those. Every answer is one row that begins with a null, which a leader takes for "nothing
 * found"; `place` and `job` are what the search for keys expects, `named` and `young` what the insert of jobs does,
 * `tenant` what whoever reads jobs does.
 */
export async function recordStatements(
  run: (db: Queryable & Pool) => Promise<unknown>,
): Promise<RecordedStatement[]> {
  const recorded: RecordedStatement[] = [];
  const query = async (statement: string | { name?: string; text: string }) => {
    if (typeof statement !== 'string') recorded.push({ name: statement.name ?? '', text: statement.text });
    // A queue that is answered with was refused.
    if (typeof statement !== 'string' && statement.name === 'add-queues')
      return { rows: [], rowCount: 0 } as unknown as pg.QueryResult;
    return {
      rows: [{ nothing: null, place: 1, job: JOB_OF_KEYS, named: true, young: true, tenant: TENANT }],
      rowCount: 1,
    } as unknown as pg.QueryResult;
  };
  await run({ query } as unknown as Queryable & Pool);
  return recorded;
}
