import type { Config } from '../core/config.js';
import type { Log } from '../core/log.js';
import { openPool, type Pool, type PoolOptions } from '../store/database.js';

/** Longest deadline of any statement that is not a list for people. */
const LONGEST_MS = 5_000;
/** Lists for people may take longer than anything a leader does. */
const READ_TIMEOUT_MS = 30_000;

export interface Pools {
  /** With the plans of the hot statements, and deadlines below the lease's TTL. */
  readonly hot: Pool;
  /** For everything else. */
  readonly pool: Pool;
}

/** The connections of a node, half for the hot statements. The lease has one of its own. */
export function openPools(config: Config, databaseUrl: string, nodeId: string, log: Log): Pools {
  // A leader that hangs in a statement must not outlive its term, so all deadlines lie below the TTL.
  const deadline = Math.min(LONGEST_MS, Math.floor(config.leaseTtl * 0.8));
  const common: Omit<PoolOptions, 'hot'> = {
    max: Math.max(2, Math.floor(config.databaseConnections / 2)),
    applicationName: `punctual ${nodeId}`,
    statementTimeoutMs: deadline,
    lockTimeoutMs: Math.floor(deadline / 2),
    idleInTransactionTimeoutMs: deadline,
    onIdleError: (error) => log.debug({ error: error.message }, 'an idle database connection was lost'),
  };
  return {
    hot: openPool(databaseUrl, { ...common, hot: true }),
    pool: openPool(databaseUrl, { ...common, hot: false, statementTimeoutMs: READ_TIMEOUT_MS }),
  };
}
