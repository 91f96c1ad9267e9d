import type { Config } from '../core/config.js';
import type { Log } from '../core/log.js';
import { openPool, type Pool, type PoolOptions, type SettingsBy } from '../store/database.js';

/** Longest deadline of any statement that is not a list for people. */
const LONGEST_MS = 5_000;
/** Lists for people may take longer than anything a leader does. */
const READ_TIMEOUT_MS = 30_000;
/** A leader that has to step over millions of dead rows may take longer still: it writes nothing meanwhile. */
const PATIENT_TIMEOUT_MS = 300_000;
/** What a leader reads at once beyond the deadline: all that waits, and the page of a segment. */
const PATIENT_CONNECTIONS = 2;

export interface Pools {
  /**
   * For what no request may hold up, however many there are: the leader's statements, and look-ups of keys, which
   * are few because they are remembered. With the plans of the hot statements, and deadlines below the lease's TTL.
   */
  readonly leader: Pool;
  /** For submissions and reads of single jobs; like the leader's, but with connections of its own. */
  readonly hot: Pool;
  /** For everything else. */
  readonly pool: Pool;
  /** For what a leader could not read within the deadline of its statements; opened when it comes to that. */
  readonly patient: Pool;
}

/** Connections for submissions that stay open: opening one takes as long as several submissions. */
const KEPT_CONNECTIONS = 2;

/** The connections of a node, a third for each purpose. The lease has one of its own. */
export function openPools(
  config: Config,
  databaseUrl: string,
  nodeId: string,
  log: Log,
  settingsBy: SettingsBy,
): Pools {
  // A leader that hangs in a statement must not outlive its term, so all deadlines lie below the TTL.
  const deadline = Math.min(LONGEST_MS, Math.floor(config.leaseTtl * 0.8));
  const third = Math.floor(config.databaseConnections / 3);
  const leading = config.databaseConnections - 2 * third;
  const common: Omit<PoolOptions, 'hot' | 'max'> = {
    applicationName: `punctual ${nodeId}`,
    statementTimeoutMs: deadline,
    lockTimeoutMs: Math.floor(deadline / 2),
    idleInTransactionTimeoutMs: deadline,
    settingsBy,
    onIdleError: (error) => log.debug({ error: error.message }, 'an idle database connection was lost'),
  };
  return {
    leader: openPool(databaseUrl, { ...common, max: leading, min: leading, hot: true }),
    hot: openPool(databaseUrl, { ...common, max: third, min: Math.min(third, KEPT_CONNECTIONS), hot: true }),
    pool: openPool(databaseUrl, { ...common, max: third, hot: false, statementTimeoutMs: READ_TIMEOUT_MS }),
    patient: openPool(databaseUrl, {
      ...common,
      max: PATIENT_CONNECTIONS,
      hot: true,
      statementTimeoutMs: PATIENT_TIMEOUT_MS,
    }),
  };
}

/** Ends all connections once nothing is under way on them. */
export async function closePools({ leader, hot, pool, patient }: Pools): Promise<void> {
  await Promise.all([leader.end(), hot.end(), pool.end(), patient.end()]);
}
