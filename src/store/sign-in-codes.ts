import { randomBytes } from 'node:crypto';
import { COLUMNS, hashKey, isSealed, type KeyRow, sealed } from './api-keys.js';
import { type Queryable, run, statement } from './database.js';

/**
 * One-time codes for signing in with a key that stays where it is. A code is kept as a hash, so that whoever reads the
 * database cannot sign in, and in the database, so that any node takes it.
 */

const PREFIX = 'pc_';
/** Codes of one key that are valid at a time; a further one ends the oldest. */
const MOST_OF_A_KEY = 20;

const ADD_CODE = statement(
  'add-sign-in-code',
  `
    WITH old AS (
      DELETE FROM punctual.sign_in_codes c WHERE c.hash = ANY (ARRAY(
        SELECT o.hash FROM punctual.sign_in_codes o WHERE o.key_id = $2::uuid
        ORDER BY o.created_at DESC OFFSET ${MOST_OF_A_KEY - 1}))
    ), expired AS (
      DELETE FROM punctual.sign_in_codes c WHERE c.key_id = $2::uuid AND c.expires_at <= $3::bigint
    )
    INSERT INTO punctual.sign_in_codes (hash, key_id, created_at, expires_at)
    SELECT $1::bytea, k.id, $3::bigint, $4::bigint FROM punctual.api_keys k WHERE k.id = $2::uuid
    RETURNING expires_at`,
);

/** Deleting it is what makes a code valid once: of several nodes that are asked at a time, one finds it. */
const REDEEM_CODE = statement(
  'redeem-sign-in-code',
  `
    WITH code AS (
      DELETE FROM punctual.sign_in_codes WHERE hash = $1::bytea RETURNING key_id, expires_at AS until
    )
    SELECT k.hash, ${COLUMNS} FROM code c JOIN punctual.api_keys k ON k.id = c.key_id
    WHERE c.until > $2::bigint AND (k.expires_at IS NULL OR k.expires_at > $2::bigint)`,
);

/** A new code. */
export function makeCode(secret: Buffer): string {
  return sealed(secret, PREFIX + randomBytes(32).toString('base64url'));
}

/** Whether a code was made with this secret; it may have been used since. */
export function isGenuineCode(secret: Buffer, code: string): boolean {
  return code.startsWith(PREFIX) && isSealed(secret, code);
}

/** Keeps a code of a key; false if there is no such key any more. */
export async function addCode(
  db: Queryable,
  secret: Buffer,
  code: string,
  keyId: string,
  now: number,
  expiresAt: number,
): Promise<boolean> {
  return (await run(db, ADD_CODE, [hashKey(secret, code), keyId, now, expiresAt])).length > 0;
}

/** The key of a code that is valid, with its hash; the code is used up by that. */
export async function redeemCode(
  db: Queryable,
  secret: Buffer,
  code: string,
  now: number,
): Promise<(KeyRow & { readonly hash: Buffer }) | null> {
  type Row = KeyRow & { readonly hash: Buffer };
  return (await run<Row>(db, REDEEM_CODE, [hashKey(secret, code), now]))[0] ?? null;
}
