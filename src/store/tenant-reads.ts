import pg from 'pg';
import { inTransaction, type Pool, type Queryable, SET_HOT_PLANS } from './database.js';

/**
 * Reads on behalf of people, behind row-level security (see tenant-wall.ts): inside a transaction, the connection takes on
 * the role that sees the rows of one tenant only. Role and tenant are set for the transaction alone, so nothing of them is
 * left for whoever gets the connection next, in this node or behind a pooler.
 *
 * Without a wall the same statements run as the owner of the tables. Their own conditions name the tenant either way.
 */
export class TenantReads {
  constructor(
    private readonly pool: Pool,
    /** The role; null where the wall does not stand. */
    private readonly role: string | null,
  ) {}

  /** Reads what belongs to a tenant. */
  read<T>(tenant: string, work: (db: Queryable) => Promise<T>): Promise<T> {
    if (this.role === null) return work(this.pool);
    return inTransaction(this.pool, work, `BEGIN READ ONLY; ${this.behindWall(tenant, this.role)}`);
  }

  /**
   * Searches for something without the wall, and reads it behind it, in one snapshot. For searches that examine rows of
   * other tenants: the wall would hide these, and the bound on how many are examined with them. What a search tells is
   * ids; everything that is shown is read afterwards.
   */
  readFound<F, T>(
    tenant: string,
    search: (db: Queryable) => Promise<F>,
    read: (db: Queryable, found: F) => Promise<T>,
  ): Promise<T> {
    const work = async (db: Queryable) => {
      const found = await search(db);
      if (this.role !== null) await db.query(this.behindWall(tenant, this.role));
      return read(db, found);
    };
    return inTransaction(
      this.pool,
      work,
      `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ${SET_HOT_PLANS}`,
    );
  }

  /** As text, so that all of it is one round trip together with BEGIN. */
  private behindWall(tenant: string, role: string): string {
    return `SET LOCAL ROLE ${pg.escapeIdentifier(role)}; SET LOCAL row_security TO on;
      SELECT set_config('punctual.tenant', ${pg.escapeLiteral(tenant)}, true)`;
  }
}
