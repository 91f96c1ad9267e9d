import type { AuditEntry } from '../core/audit.js';
import { PunctualError } from '../core/errors.js';
import { greatest } from '../core/long-lists.js';
import { stands } from '../host/test-switches.js';
import { entryValues, insertEntrySql } from './audit-entry.js';
import {
  inTransaction,
  isCertainFailure,
  type Pool,
  type Queryable,
  type Row,
  type Statement,
  statement,
} from './database.js';

/**
 * All writes of a leader are made here.
 *
 * Every statement made here begins by locking its term's row FOR KEY SHARE and yields no row at all when the
 * term is over. A takeover changes the key of that row, so it waits for writes in flight and makes later ones
 * match nothing; a renewal changes no key column, so the two never wait for each other. The holder is compared
 * too, because a replica that was promoted may repeat an epoch.
 *
 * Each data-modifying part must be gated by `EXISTS (SELECT 1 FROM term)` or read from a part that is: Postgres
 * runs the parts of a WITH independently. A test runs every statement of this registry with an old epoch.
 */

/** What identifies a term in the fence. */
export interface TermKey {
  readonly shard: number;
  readonly epoch: number;
  readonly holder: string;
  /** The entry of the audit that is written with the next statement, if that changes anything. */
  readonly entry?: AuditEntry;
}

/** The term under which a statement also writes an entry of the audit; the term itself if there is none. */
export function audited(term: TermKey, entry: AuditEntry | undefined): TermKey {
  const { shard, epoch, holder } = term;
  return entry ? { shard, epoch, holder, entry } : term;
}

/** The term is over, and the statement changed nothing. */
export class TermOverError extends Error {
  constructor(readonly term: TermKey) {
    super(`the term of epoch ${term.epoch} is over`);
    this.name = 'TermOverError';
  }
}

/** The outcome of a leader's write is unknown; only a new term, which reads everything, resolves it. */
export class InDoubtError extends Error {
  constructor(statement: string, cause: unknown) {
    super(`the outcome of ${statement} is unknown`, { cause });
    this.name = 'InDoubtError';
  }
}

/** A fenced statement; $1, $2, $3 are shard, epoch and holder. */
export interface LeaderStatement extends Statement {
  readonly leader: true;
  /** The same statement with an entry of the audit, whose values are the last parameters. */
  readonly audited?: LeaderStatement;
}

const registry: LeaderStatement[] = [];

/** All leader statements that have been defined, for the test of the fences. */
export function leaderStatements(): readonly LeaderStatement[] {
  return registry;
}

/** Locks the row of a term; selects any row of the shard when tests have removed this fence. */
const HOLD_TERM = stands('term')
  ? `SELECT 1 AS held FROM punctual.leases
    WHERE shard = $1 AND epoch = $2 AND ${stands('holder') ? 'holder = $3' : '$3::text IS NOT NULL'} FOR KEY SHARE`
  : 'SELECT 1 AS held FROM punctual.leases WHERE shard = $1 AND $2::bigint IS NOT NULL AND $3::text IS NOT NULL';

const TERM = `term AS (${HOLD_TERM})`;

/** True inside a leader statement while the term lasts. */
export const WHILE_TERM_LASTS = 'EXISTS (SELECT 1 FROM term)';

/**
 * Defines a fenced statement from the parts of its WITH; the part named `answer` is what it returns. The first
 * column of `answer` must not be null. The outer join makes "nothing found" (one row of nulls) different from
 * "the term is over" (no row).
 */
export function leaderStatement(name: string, parts: string): LeaderStatement {
  const text = `WITH ${TERM}, ${parts} SELECT answer.* FROM term LEFT JOIN answer ON true`;
  const fenced: LeaderStatement = { ...statement(name, text), leader: true };
  registry.push(fenced);
  return fenced;
}

/**
 * The same for a statement that people cause: it can be run with an entry of the audit, which is written if `answer` has a
 * row. Effect and entry are one statement, so that there is never one of them without the other.
 */
export function auditedStatement(name: string, parts: string): LeaderStatement {
  const plain = leaderStatement(name, parts);
  const last = greatest(Array.from(plain.text.matchAll(/\$(\d+)/g), ([, number]) => Number(number)));
  const entry = `${insertEntrySql(last + 1, '$2::bigint')} WHERE EXISTS (SELECT 1 FROM answer) AND ${WHILE_TERM_LASTS}`;
  return { ...plain, audited: leaderStatement(`${name}-audited`, `${parts}, entry AS (${entry})`) };
}

/** Runs a fenced statement; throws TermOverError or InDoubtError when this leader must decide nothing more. */
export async function runAsLeader<R extends Row>(
  db: Queryable,
  term: TermKey,
  statement: LeaderStatement,
  values: unknown[],
): Promise<R[]> {
  let rows: R[];
  const { entry } = term;
  const { name, text } = entry ? withEntry(statement) : statement;
  try {
    const result = await db.query({
      name,
      text,
      values: [term.shard, term.epoch, term.holder, ...values, ...(entry ? entryValues(entry) : [])],
    });
    rows = result.rows as R[];
  } catch (error) {
    if (isCertainFailure(error) || !stands('in-doubt')) throw error;
    throw new InDoubtError(statement.name, error);
  }
  if (rows.length === 0) throw new TermOverError(term);
  if (rows.length === 1 && Object.values(rows[0]!)[0] === null) return [];
  return rows;
}

function withEntry(statement: LeaderStatement): LeaderStatement {
  if (!statement.audited) throw new Error(`${statement.name} takes no entry of the audit`);
  return statement.audited;
}

/** Thrown inside a transaction by the code that runs it: the transaction is rolled back, so nothing was done. */
export class RolledBackError extends Error {}

/** Runs several statements in one transaction that begins with the fence. */
export async function leaderTransaction<T>(
  pool: Pool,
  term: TermKey,
  work: (db: Queryable) => Promise<T>,
): Promise<T> {
  try {
    return await inTransaction(pool, async (db) => {
      const held = await db.query(HOLD_TERM, [term.shard, term.epoch, term.holder]);
      if (held.rowCount === 0) throw new TermOverError(term);
      return work(db);
    });
  } catch (error) {
    if (error instanceof TermOverError || error instanceof InDoubtError || isCertainFailure(error))
      throw error;
    if (error instanceof RolledBackError || error instanceof PunctualError) throw error;
    throw new InDoubtError('a transaction', error);
  }
}
