import { type Connection, isStatementTimeout, type Pool, type Queryable } from './database.js';
import { sessionPid } from './lease.js';

interface Query {
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
}

/**
 * Reads without the timeout of a leader's statements. While the xmin horizon is pinned, an index keeps an entry for
 * every job that has ended since, and a read from its beginning must pass all of them. The timeout exists to keep a
 * write from outliving its term; a read that does so is harmless.
 *
 * A read is first tried on the leader's own connections, which are open already. If it times out, it is repeated on a
 * separate connection, so that no write waits behind it.
 */
export class PatientReads implements Queryable {
  private readonly reading = new Map<Connection, number | null>();
  private stopped = false;

  constructor(
    private readonly quick: Pool,
    private readonly patient: Pool,
  ) {}

  async query(query: Query | string, values?: unknown[]): ReturnType<Queryable['query']> {
    const asked: Query = typeof query === 'string' ? { text: query, ...(values && { values }) } : query;
    try {
      return await this.quick.query(asked);
    } catch (error) {
      if (this.stopped || !isStatementTimeout(error)) throw error;
      return this.readOn(asked);
    }
  }

  /** Cancels all reads, because the term is over. */
  stop(): void {
    this.stopped = true;
    for (const [connection, session] of this.reading) {
      // Closing the connection is not enough: the server notices that only when it sends rows, perhaps in minutes.
      this.quick.query('SELECT pg_cancel_backend($1)', [session]).catch(() => undefined);
      this.giveBack(connection, true);
    }
  }

  private async readOn(query: Query): ReturnType<Queryable['query']> {
    const connection = await this.patient.connect();
    this.reading.set(connection, null);
    let failed = true;
    try {
      // Queried, because behind a pooler the driver knows only the pid of the pooler.
      const session = await sessionPid(connection);
      if (this.reading.has(connection)) this.reading.set(connection, session);
      if (this.stopped) throw new Error('the term is over');
      const result = await connection.query(query);
      failed = false;
      return result;
    } finally {
      this.giveBack(connection, failed);
    }
  }

  private giveBack(connection: Connection, failed: boolean): void {
    if (this.reading.delete(connection)) connection.release(failed);
  }
}
