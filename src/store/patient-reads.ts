import { type Connection, isStatementTimeout, type Pool, type Queryable } from './database.js';
import { sessionPid } from './lease.js';

interface Query {
  readonly name?: string;
  readonly text: string;
  readonly values?: unknown[];
}

/**
 * Reads that may take as long as they need. While something pins the xmin horizon, an index keeps an entry for every job
 * that has ended since, and whoever reads from its beginning steps over all of them. The deadline of a leader's
 * statements keeps a write from outliving its term; a read does no harm by then.
 *
 * A read is tried on the leader's own connections, which stand ready. What these give up for lack of time is read again
 * on a connection for this purpose, so that no write ever waits behind it.
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

  /** Gives up what is being read: the term is over, and nobody waits for it. */
  stop(): void {
    this.stopped = true;
    for (const [connection, session] of this.reading) {
      // The server looks at its client only when it has something to send, which may be minutes from now.
      this.quick.query('SELECT pg_cancel_backend($1)', [session]).catch(() => undefined);
      this.giveBack(connection, true);
    }
  }

  private async readOn(query: Query): ReturnType<Queryable['query']> {
    const connection = await this.patient.connect();
    this.reading.set(connection, null);
    let failed = true;
    try {
      // Asked for: behind a pooler the driver knows only the pooler's number.
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
