import { PunctualError } from '../core/errors.js';
import { isDatabaseBusy, type Pool, type Queryable, run, statement } from './database.js';
import { leaderTransaction, RolledBackError, type TermKey } from './leader-statement.js';

/**
 * Answers to requests with an Idempotency-Key.
 *
 * There is no reservation: the row with the answer is inserted in the transaction of the effect, so a crash leaves both
 * or neither. Two equal requests that run at the same time meet at the primary key: the second one waits for the first to
 * commit, then finds the row and rolls its own effect back.
 */

/** A request with an Idempotency-Key. */
export interface KeyedRequest {
  readonly tenant: string;
  readonly key: string;
  /** SHA-256 of what is asked for. */
  readonly hash: Buffer;
}

/** An answer as it is stored. */
export interface KeptAnswer {
  readonly status: number;
  readonly location: string | null;
  /** JSON text; null when there is no body. */
  readonly answer: string | null;
  /** The jobs of a bulk, whose answer is stored without them. */
  readonly ids: readonly string[] | null;
}

/** Stores the answer inside the transaction of an effect, given what the effect returned. */
export type Keep<T> = (db: Queryable, result: T) => Promise<void>;

/** The same request has been answered while this one ran, which was therefore rolled back. */
export class AnsweredMeanwhileError extends RolledBackError {
  constructor() {
    super('the same request was answered meanwhile');
    this.name = 'AnsweredMeanwhileError';
  }
}

/** The error for a request whose first try has not been answered yet. */
export function inFlight(): PunctualError {
  const detail = 'The first request with this Idempotency-Key is still being carried out; try again shortly.';
  return new PunctualError('IDEMPOTENCY_IN_FLIGHT', detail, { retryAfter: 1 });
}

const FIND_ANSWER = statement(
  'find-answer',
  `
    SELECT i.request, i.status, i.location, i.answer, i.ids FROM punctual.idempotency i
    WHERE i.tenant = $1 AND i.key = $2 AND i.created_at >= $3::bigint`,
);

/** A row that is too old is replaced: it may not have been removed yet. */
const KEEP_ANSWER = statement(
  'keep-answer',
  `
    INSERT INTO punctual.idempotency AS i (tenant, key, request, status, location, answer, ids, created_at)
    VALUES ($1, $2, $3::bytea, $4::smallint, $5, $6::json, $7::uuid[], $8::bigint)
    ON CONFLICT (tenant, key) DO UPDATE SET request = excluded.request, status = excluded.status,
      location = excluded.location, answer = excluded.answer, ids = excluded.ids, created_at = excluded.created_at
      WHERE i.created_at < $9::bigint
    RETURNING 1 AS kept`,
);

const RENEW_ANSWER = statement(
  'renew-answer',
  `
    UPDATE punctual.idempotency i SET answer = $4::json
    WHERE i.tenant = $1 AND i.key = $2 AND i.request = $3::bytea
    RETURNING 1 AS renewed`,
);

/** The answer that is kept for a key since the moment `oldest`, and the hash of the request that it answers. */
export async function findAnswer(
  db: Queryable,
  tenant: string,
  key: string,
  oldest: number,
): Promise<(KeptAnswer & { readonly request: Buffer }) | null> {
  const rows = await run<{ request: Buffer } & { [K in keyof KeptAnswer]: KeptAnswer[K] }>(db, FIND_ANSWER, [
    tenant,
    key,
    oldest,
  ]);
  return rows[0] ?? null;
}

/** When an answer is kept, and from which moment on answers count. */
export interface KeepingTime {
  readonly now: number;
  readonly oldest: number;
}

/**
 * Stores an answer inside a transaction. Throws AnsweredMeanwhileError if the key has one. While another transaction
 * stores one, it waits as long as lock_timeout allows, two seconds at most; then it throws IDEMPOTENCY_IN_FLIGHT.
 */
export async function keepAnswer(
  db: Queryable,
  { tenant, key, hash }: KeyedRequest,
  { status, location, answer, ids }: KeptAnswer,
  { now, oldest }: KeepingTime,
): Promise<void> {
  const values = [tenant, key, hash, status, location, answer, ids, now, oldest];
  const kept = await run(db, KEEP_ANSWER, values).catch((error: unknown) => {
    throw isDatabaseBusy(error) ? inFlight() : error;
  });
  if (kept.length === 0) throw new AnsweredMeanwhileError();
}

/** Replaces the body of the answer to this same request; answers whether there is one. */
export async function renewAnswer(
  db: Queryable,
  { tenant, key, hash }: KeyedRequest,
  answer: string,
): Promise<boolean> {
  return (await run(db, RENEW_ANSWER, [tenant, key, hash, answer])).length > 0;
}

/** How long an answer waits for another one with its key where others wait meanwhile. */
const SHORT_WAIT_MS = 25;

/**
 * Keeps an answer as the last thing of a transaction for which others wait: those of other tenants behind it in a queue of the
 * leader, or for a row that it has locked. So it hardly waits for another request with its key, which only its own tenant can make.
 */
export async function keepLast<T>(db: Queryable, keep: Keep<T> | undefined, result: T): Promise<void> {
  if (!keep) return;
  await db.query(`SET LOCAL lock_timeout = ${SHORT_WAIT_MS}`);
  await keep(db, result);
}

/**
 * Runs a leader's write; if its answer is to be kept, both in one transaction. Nothing is kept about a write that found
 * nothing to change, which its caller reports as an error.
 */
export function leaderEffect<T>(
  { hot, term }: { readonly hot: Pool; readonly term: TermKey },
  keep: Keep<T> | undefined,
  write: (db: Queryable) => Promise<T>,
): Promise<T> {
  if (!keep) return write(hot);
  return leaderTransaction(hot, term, async (db) => {
    const result = await write(db);
    const isNothing = Array.isArray(result) ? result.length === 0 : result === null || result === false;
    if (!isNothing) await keepLast(db, keep, result);
    return result;
  });
}
