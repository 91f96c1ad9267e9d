import pg from 'pg';
import { messageOf, PunctualError } from '../core/errors.js';

/** Connections to one shard's database, and the kinds of failure that callers must tell apart. */

export type Row = Record<string, unknown>;

/** A prepared statement: static text under a stable name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

const registry: Statement[] = [];

/** All prepared statements that have been defined, for the test of their texts. */
export function statements(): readonly Statement[] {
  return registry;
}

/** Defines a prepared statement. */
export function statement(name: string, text: string): Statement {
  const defined = { name, text };
  registry.push(defined);
  return defined;
}

/** What statements run on: a pool, or one connection inside a transaction. */
export interface Queryable {
  query(config: {
    name?: string;
    text: string;
    values?: unknown[];
    rowMode?: 'array';
  }): Promise<pg.QueryResult>;
  query(text: string, values?: unknown[]): Promise<pg.QueryResult>;
}

export type Pool = pg.Pool;
export type Connection = pg.PoolClient;

/** Bigints in our tables are milliseconds and counters, which are safe integers; JSON stays text. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === 20
      ? Number
      : oid === 114
        ? String
        : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

/**
 * Generic plans for statements over `unnest($1)` are estimated badly and turn into hash joins over sequential
 * scans. The hot pool therefore rules those out; a test checks the plans.
 */
const HOT_PLANS = {
  plan_cache_mode: 'force_generic_plan',
  jit: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_seqscan: 'off',
  enable_bitmapscan: 'off',
  random_page_cost: '1',
};

/** Keeps firewalls from dropping idle connections, and finds out when the server is gone. */
const KEEP_ALIVE = { keepAlive: true, keepAliveInitialDelayMillis: 10_000 };

/**
 * The address of a database as the driver takes it. The driver treats most modes of TLS as `verify-full` today and warns
 * that it will not always; we keep that meaning, and say so to the driver. With `uselibpqcompat` the user has chosen.
 */
export function driverUrl(databaseUrl: string): string {
  if (/[?&]uselibpqcompat=true(&|$)/.test(databaseUrl)) return databaseUrl;
  return databaseUrl.replace(/([?&]sslmode=)(prefer|require|verify-ca)(?=&|$)/, '$1verify-full');
}
/** A connection gets its settings with its start, or where a pooler does not pass those on, by a first statement. */
export type SettingsBy = 'startup' | 'statement';

/** How a pool connects, and the deadlines of its statements. */
export interface PoolOptions {
  readonly max: number;
  /** Connections that stay open while idle; default none. */
  readonly min?: number;
  readonly applicationName: string;
  /** Whether to restrict the planner for the hot statements; reads for the API need all kinds of plans. */
  readonly hot: boolean;
  /** Timeouts on the server; each covers a hang that the others do not. */
  readonly statementTimeoutMs: number;
  readonly lockTimeoutMs: number;
  readonly idleInTransactionTimeoutMs: number;
  /** How a connection gets its settings; default with its start. */
  readonly settingsBy?: SettingsBy;
  /** Called for errors of idle connections, which belong to no query. */
  readonly onIdleError?: (error: Error) => void;
}

/**
 * The settings of every connection, whatever the defaults of the database. The statements rely on READ COMMITTED: each
 * sees what was committed before it began, even after waiting for a lock, and none fails because of concurrent writes.
 */
const ISOLATION = { default_transaction_isolation: 'read committed' };
/** The same for a connection that does one thing and ends. */
export const OUR_SETTINGS = settingsText(ISOLATION);

type Settings = Readonly<Record<string, string | number>>;

function settings(options: Omit<PoolOptions, 'max'>): Settings {
  return {
    ...ISOLATION,
    statement_timeout: options.statementTimeoutMs,
    lock_timeout: options.lockTimeoutMs,
    idle_in_transaction_session_timeout: options.idleInTransactionTimeoutMs,
    tcp_user_timeout: options.statementTimeoutMs,
    ...(options.hot ? HOT_PLANS : { jit: 'off' }),
  };
}

/** Settings in the form of the `options` of a new connection. */
function settingsText(values: Settings): string {
  return Object.entries(values)
    .map(([name, value]) => `-c ${name}=${String(value).replaceAll(' ', '\\ ')}`)
    .join(' ');
}

/** The same settings as statements. */
function settingStatements(values: Settings): string {
  return Object.entries(values)
    .map(([name, value]) => `SET ${name} TO '${value}'`)
    .join('; ');
}

/** No connection could be made, so certainly nothing was sent or done. */
export class NotConnectedError extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
    this.name = 'NotConnectedError';
  }
}

type OnConnect = (
  error: Error | undefined,
  client: pg.PoolClient | undefined,
  done: (release?: unknown) => void,
) => void;

/** A pool that distinguishes failures to get a connection from failures on one, whose outcome is unknown. */
class TellingPool extends pg.Pool {
  override connect(): Promise<pg.PoolClient>;
  override connect(callback: OnConnect): void;
  override connect(callback?: OnConnect): Promise<pg.PoolClient> | undefined {
    if (callback) {
      super.connect((error, client, done) => callback(error && new NotConnectedError(error), client, done));
      return undefined;
    }
    return super.connect().catch((error: Error) => {
      throw new NotConnectedError(error);
    });
  }
}

/** Opens a pool; connections are made on demand. */
export function openPool(databaseUrl: string, options: PoolOptions): Pool {
  const values = settings(options);
  const statements = settingStatements(values);
  const pool = new TellingPool({
    connectionString: driverUrl(databaseUrl),
    max: options.max,
    min: options.min ?? 0,
    types,
    application_name: options.applicationName,
    ...(options.settingsBy === 'statement'
      ? { verify: (client, done) => void client.query(statements).then(() => done(), done) }
      : { options: settingsText(values) }),
    connectionTimeoutMillis: 5_000,
    // The server's deadline comes first; this one covers a server that no longer answers at all.
    query_timeout: options.statementTimeoutMs + 2_000,
    ...KEEP_ALIVE,
    idleTimeoutMillis: 30_000,
  });
  pool.on('error', (error) => options.onIdleError?.(error));
  // A server that goes away can cause two errors: one for the running query, and an event afterwards. An error event
  // without a listener would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/**
 * Opens all connections of a pool ahead of time. All are requested at once, so each can be released as soon as it is
 * open.
 */
export async function openAll(pool: Pool): Promise<void> {
  const open = async () => (await pool.connect()).release();
  const opened = await Promise.allSettled(Array.from({ length: pool.options.max }, open));
  const failed = opened.find((each) => each.status === 'rejected');
  if (failed) throw failed.reason;
}

/** One connection outside any pool, for work that must never wait for a free one. */
export async function openConnection(
  databaseUrl: string,
  options: Omit<PoolOptions, 'max'>,
): Promise<pg.Client> {
  const values = settings(options);
  const byStatement = options.settingsBy === 'statement';
  const client = new pg.Client({
    connectionString: driverUrl(databaseUrl),
    types,
    application_name: options.applicationName,
    ...(!byStatement && { options: settingsText(values) }),
    connectionTimeoutMillis: 5_000,
    query_timeout: options.statementTimeoutMs + 2_000,
    ...KEEP_ALIVE,
  });
  client.on('error', (error) => options.onIdleError?.(error));
  await client.connect();
  if (byStatement) await client.query(settingStatements(values));
  return client;
}

/** One connection for work that ends soon, with the server's defaults but for what `options` says. */
export async function openBriefly(databaseUrl: string, options: pg.ClientConfig): Promise<pg.Client> {
  let client: pg.Client;
  try {
    client = new pg.Client({
      connectionString: driverUrl(databaseUrl),
      connectionTimeoutMillis: 10_000,
      ...options,
    });
  } catch (error) {
    throw new PunctualError('CONFIGURATION', `The database URL is not valid: ${messageOf(error)}`, {
      cause: error,
    });
  }
  client.on('error', () => undefined);
  await client.connect();
  return client;
}

/** Runs a prepared statement. */
export async function run<R extends Row>(
  db: Queryable,
  statement: Statement,
  values: unknown[],
): Promise<R[]> {
  const result = await db.query({ name: statement.name, text: statement.text, values });
  return result.rows as R[];
}

/**
 * Runs `work` in one transaction on one connection; a broken connection does not return to the pool. `begin` may set what
 * holds for the transaction, in the same round trip.
 */
export async function inTransaction<T>(
  pool: Pool,
  work: (db: Connection) => Promise<T>,
  begin = 'BEGIN',
): Promise<T> {
  const db = await pool.connect();
  let broken: Error | undefined;
  // Without a listener, a connection that is lost between two statements would end the process.
  const onLost = (error: Error) => {
    broken = error;
  };
  db.on('error', onLost);
  try {
    await db.query(begin);
    const value = await work(db);
    await db.query('COMMIT');
    return value;
  } catch (error) {
    await db.query('ROLLBACK').catch((failure: Error) => {
      broken = failure;
    });
    throw error;
  } finally {
    db.off('error', onLost);
    db.release(broken);
  }
}

/** Has the plans of the hot pool for the rest of a transaction. */
export const SET_HOT_PLANS = Object.entries(HOT_PLANS)
  .map(([name, value]) => `SET LOCAL ${name} TO '${value}'`)
  .join('; ');

/**
 * Runs statements on a connection of any pool with the plans of the hot pool: for reads over many rows that need those
 * plans and must not take connections from what is in a hurry.
 */
export function withHotPlans<T>(pool: Pool, work: (db: Queryable) => Promise<T>): Promise<T> {
  return inTransaction(pool, work, `BEGIN; ${SET_HOT_PLANS}`);
}

/** The SQLSTATE of an error from the server; null for other errors, such as a lost connection. */
function sqlState(error: unknown): string | null {
  return error instanceof pg.DatabaseError ? (error.code ?? null) : null;
}

/**
 * Whether the statement certainly had no effect: it was never sent, or the server refused it. After any other error,
 * such as a lost connection, the outcome is unknown. Class 57P is a shutdown of the server, 08 a connection failure.
 */
export function isCertainFailure(error: unknown): boolean {
  if (error instanceof NotConnectedError) return true;
  const state = sqlState(error);
  return state !== null && !state.startsWith('57P') && !state.startsWith('08');
}

/** SQLSTATE of a row without a matching partition. */
const CHECK_VIOLATION = '23514';

/** Whether an insert found no partition for its day. */
export function isMissingPartition(error: unknown): boolean {
  return sqlState(error) === CHECK_VIOLATION;
}

/** Whether the data of a row caused the failure, so that other rows of the batch may succeed. */
export function isDataError(error: unknown): boolean {
  const state = sqlState(error);
  if (state === null || state === CHECK_VIOLATION) return false;
  return state.startsWith('22') || state.startsWith('23') || state.startsWith('54');
}

/** Whether a statement found something other than it must be, and failed by dividing by zero so that nothing of it was done. */
export function isRefusedByItself(error: unknown): boolean {
  return sqlState(error) === '22012';
}

/** Whether an insert refers to a row that is not there. */
export function isMissingReference(error: unknown): boolean {
  return sqlState(error) === '23503';
}

const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENOTFOUND',
]);
/** Messages of driver errors without a code, when a connection ends or cannot be made in time. */
const CONNECTION_LOST =
  /connection terminated|timeout exceeded when trying to connect|query read timeout|client was closed|not queryable/i;

/** Whether the database could not be reached, went away, or has no room for another connection. */
function isDatabaseUnavailable(error: unknown): boolean {
  if (error instanceof NotConnectedError) return true;
  const state = sqlState(error);
  if (state !== null) return state.startsWith('57P') || state.startsWith('08') || state === '53300';
  if (!(error instanceof Error)) return false;
  const { code } = error as NodeJS.ErrnoException;
  return UNREACHABLE.has(code ?? '') || CONNECTION_LOST.test(error.message);
}

/** SQLSTATE of a lock that was not granted, in time or at once. */
const LOCK_NOT_AVAILABLE = '55P03';

/** Whether another session holds the lock. */
export function isLockTaken(error: unknown): boolean {
  return sqlState(error) === LOCK_NOT_AVAILABLE;
}

const STATEMENT_TIMEOUT = '57014';
/** SQLSTATEs of a lock that was not granted, and of a deadlock. */
const BLOCKED = new Set([LOCK_NOT_AVAILABLE, '40P01']);

/** Whether a lock of another session made the statement fail, so that it may succeed later. */
export function isBlocked(error: unknown): boolean {
  return BLOCKED.has(sqlState(error) ?? '');
}

/** Whether the server cancelled the statement at its timeout. */
export function isStatementTimeout(error: unknown): boolean {
  return sqlState(error) === STATEMENT_TIMEOUT;
}

/** Whether the statement met its timeout or a lock, so that it may succeed later. */
export function isDatabaseBusy(error: unknown): boolean {
  return isStatementTimeout(error) || isBlocked(error);
}

/** Messages for the SQLSTATEs with which a server lacking a resource rolls a statement back. */
const EXHAUSTED: Readonly<Record<string, string>> = {
  '53000': 'The database server lacks resources and has undone this',
  '53100': 'The disk of the database server is full, and it has undone this; make room there',
  '53200': 'The database server is out of memory and has undone this',
  '53400': 'The database server has reached one of its limits and has undone this',
};

/** Turns transient failures into the error that users see; answers with other errors as they are. */
export function explainDatabaseError(error: unknown): unknown {
  const reason = isDatabaseUnavailable(error)
    ? 'The database did not answer'
    : isDatabaseBusy(error)
      ? 'The database is too busy and has undone this; try again shortly'
      : (EXHAUSTED[sqlState(error) ?? ''] ?? null);
  if (reason === null) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new PunctualError('DATABASE_UNAVAILABLE', `${reason}: ${message}`, { cause: error, retryAfter: 1 });
}
