import { auditLine } from '../core/audit.js';
import { type ChainEnds, linkOf, listChain, readChainEnds } from './audit.js';
import { explainDatabaseError, inTransaction, openPool } from './database.js';
import { settingsThrough } from './migrate.js';

/** The chain of the audit for those who have access to the database. */

/** How much is read at once. */
const PORTION = { rows: 1_000, bytes: 4 * 1024 * 1024 };
const STATEMENT_TIMEOUT_MS = 60_000;

/** Reads the whole chain of a database, as its lines and its ends were at one moment. */
export async function readAuditChain(
  databaseUrl: string,
  shard: number,
  onEnds: (ends: ChainEnds) => void,
  onLine: (line: string) => void,
): Promise<ChainEnds> {
  const pool = openPool(databaseUrl, {
    ...{ max: 1, applicationName: 'punctual audit', hot: false, statementTimeoutMs: STATEMENT_TIMEOUT_MS },
    ...{ lockTimeoutMs: STATEMENT_TIMEOUT_MS, idleInTransactionTimeoutMs: STATEMENT_TIMEOUT_MS },
    settingsBy: await settingsThrough(databaseUrl),
  });
  try {
    return await inTransaction(pool, async (db) => {
      // One snapshot for all portions: retention may remove entries meanwhile.
      await db.query('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const ends = await readChainEnds(db);
      onEnds(ends);
      let after = 0;
      for (let more = true; more; ) {
        const portion = await listChain(db, { tenant: null }, after, PORTION);
        for (const row of portion.rows) onLine(auditLine(shard, row, linkOf(row)));
        after = portion.rows.at(-1)?.sequence ?? after;
        more = portion.more;
      }
      return ends;
    });
  } catch (error) {
    throw explainDatabaseError(error);
  } finally {
    await pool.end();
  }
}
