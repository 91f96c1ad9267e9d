import { isErrorCode, messageOf, PunctualError } from '../core/errors.js';

/** Calls of the SQL functions inside transactions of the program's own. */

/** A Postgres client that is inside a transaction; a client of `pg` is one, a pool is none. */
export interface TransactionClient {
  query(text: string, values: unknown[]): Promise<{ readonly rows: readonly unknown[] }>;
  /** Where the client knows: `T` inside a transaction, `E` inside one that has failed, `I` outside. */
  getTransactionStatus?(): string | null;
  /** A pool has this: each of its queries may go to another connection. */
  readonly totalCount?: never;
}

/** Throws when the client is a pool, or known to be outside of a transaction. Both would take effect at once. */
export function requireTransaction(tx: TransactionClient): void {
  if (tx.totalCount !== undefined) {
    throw new PunctualError(
      'INVALID_REQUEST',
      'tx is a pool, and each query of a pool may go to another connection. Take a client with pool.connect(), and pass it after its BEGIN.',
    );
  }
  if (tx.getTransactionStatus?.() === 'I') {
    throw new PunctualError(
      'INVALID_REQUEST',
      "tx is a client outside of a transaction: this would take effect at once. Await client.query('BEGIN') first.",
    );
  }
}

/** Calls one of the functions; answers with its row. What it refuses is the error that the API would have answered with. */
export async function callInTransaction(
  tx: TransactionClient,
  statement: string,
  values: unknown[],
): Promise<{ readonly id?: unknown }> {
  try {
    const { rows } = await tx.query(statement, values);
    return (rows[0] as { id?: unknown } | undefined) ?? {};
  } catch (error) {
    throw asRefusal(error);
  }
}

/** A key has nothing to do with it. */
const GRANT_HINT =
  'Let the role do it with `punctual db grant submit ROLE --tenant NAME`, as the owner of the database.';

/** The refusal of a function as an error of ours; other errors as they are. */
function asRefusal(error: unknown): unknown {
  const { code, detail } = error as { readonly code?: unknown; readonly detail?: unknown };
  const message = messageOf(error);
  const [, pointer, wrong] = /^punctual: (\/[^:]*): (.*)$/s.exec(message) ?? [];
  if (isErrorCode(detail) && message.startsWith('punctual: ')) {
    const errors = pointer === undefined ? [] : [{ pointer, detail: wrong! }];
    const hint = detail === 'FORBIDDEN' ? { hint: GRANT_HINT } : {};
    return new PunctualError(detail, message.replace('punctual: ', ''), { cause: error, errors, ...hint });
  }
  if (code !== '42501') return error;
  return new PunctualError(
    'FORBIDDEN',
    `The database role may not do this (${message}). Whoever owns the database grants it: punctual db grant submit ROLE`,
    { cause: error, hint: GRANT_HINT },
  );
}
