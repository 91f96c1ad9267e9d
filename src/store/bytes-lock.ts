import { PunctualError } from '../core/errors.js';
import { SerialQueue } from '../core/serial-queue.js';
import { type Connection, inTransaction, type Pool, run, statement } from './database.js';

/**
 * The lock on the bytes of one hash. The store knows nothing of transactions, so it is asked inside of one that has the lock: bytes
 * that are seen there cannot be removed before the transaction ends, and nobody makes use of those that are being removed.
 *
 * A store that is slow must neither end the transaction, which would free the lock while a removal is still on its way, nor take
 * the connections of a node that everything else needs. So the transaction is given more time than the store, and of one pool one
 * connection at a time waits for the store.
 */

/** How long the store may take to answer. */
const STORE_MS = 10_000;
/** How long the transaction may wait for the store, and others for the transaction. */
const WAIT_MS = 15_000;

const WAIT = statement(
  'wait-for-store',
  `SELECT set_config('idle_in_transaction_session_timeout', '${WAIT_MS}', true), set_config('lock_timeout', '${WAIT_MS}', true)`,
);

const LOCK = statement(
  'lock-bytes',
  `SELECT pg_advisory_xact_lock(hashtextextended('punctual bytes ' || $1, 0))`,
);

/** Asks the store; the signal aborts what takes too long. */
export type AskStore = <T>(ask: (signal: AbortSignal) => Promise<T>) => Promise<T>;

const queues = new WeakMap<Pool, SerialQueue>();

/** Runs a transaction that has the lock on the bytes of a hash. */
export function withBytesLocked<T>(
  pool: Pool,
  sha256: string,
  work: (db: Connection, askStore: AskStore) => Promise<T>,
): Promise<T> {
  const queue = queues.get(pool) ?? new SerialQueue();
  queues.set(pool, queue);
  return queue.run(() =>
    inTransaction(pool, async (db) => {
      await run(db, WAIT, []);
      await run(db, LOCK, [sha256]);
      return work(db, askStore);
    }),
  );
}

async function askStore<T>(ask: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const deadline = new AbortController();
  const { signal } = deadline;
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      const detail = `The store of artifacts has not answered within ${STORE_MS / 1_000} seconds.`;
      reject(new PunctualError('ARTIFACT_STORE_UNAVAILABLE', detail, { retryAfter: 5 }));
      deadline.abort();
    }, STORE_MS);
  });
  try {
    return await Promise.race([ask(signal), late]);
  } finally {
    clearTimeout(timer);
  }
}
