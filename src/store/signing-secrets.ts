import { PunctualError } from '../core/errors.js';
import { MAX_SIGNING_SECRETS } from '../core/secret.js';
import type { Sealed } from '../core/secret-box.js';
import { assertTenant } from './assert-tenant.js';
import { inTransaction, type Pool, type Queryable, run, statement } from './database.js';

/**
 * The secrets with which a tenant's calls are signed. All that have not expired sign, so that receivers can change from one to
 * the next. Any node writes them, those of a tenant one after the other.
 */

/** A signing secret without its value. */
export interface SigningSecretRow extends Record<string, unknown> {
  readonly tenant: string;
  readonly id: string;
  readonly created_at: number;
  /** Null for one that was not replaced yet. */
  readonly expires_at: number | null;
}

/** A signing secret with its encrypted value. */
export type SealedSigningSecret = SigningSecretRow & Sealed;

const COLUMNS = 's.tenant, s.id, s.created_at, s.expires_at';
const VALID = '(s.expires_at IS NULL OR s.expires_at > $2::bigint)';

const LOCK = statement(
  'lock-signing-secrets',
  `SELECT pg_advisory_xact_lock(hashtextextended('punctual signing secrets ' || $1, 0))`,
);

const LIST = statement(
  'list-signing-secrets',
  `
    SELECT ${COLUMNS} FROM punctual.signing_secrets s
    WHERE s.tenant = $1 AND ${VALID} ORDER BY s.id DESC LIMIT ${MAX_SIGNING_SECRETS}`,
);

const READ_SEALED = statement(
  'read-sealed-signing-secrets',
  `
    SELECT ${COLUMNS}, s.key_id AS "keyId", s.sealed FROM punctual.signing_secrets s
    WHERE s.tenant = $1 AND ${VALID} ORDER BY s.id DESC LIMIT ${MAX_SIGNING_SECRETS}`,
);

const FORGET = statement(
  'forget-signing-secrets',
  'DELETE FROM punctual.signing_secrets s WHERE s.tenant = $1 AND s.expires_at <= $2::bigint',
);

/** One that ends earlier anyway keeps its end. */
const EXPIRE = statement(
  'expire-signing-secrets',
  'UPDATE punctual.signing_secrets s SET expires_at = least(s.expires_at, $2::bigint) WHERE s.tenant = $1',
);

const ADD = statement(
  'add-signing-secret',
  `
    INSERT INTO punctual.signing_secrets AS s (tenant, id, key_id, sealed, created_at) VALUES ($1, $2::uuid, $3, $4, $5)
    RETURNING ${COLUMNS}, s.key_id AS "keyId", s.sealed`,
);

const DELETE = statement(
  'delete-signing-secret',
  `DELETE FROM punctual.signing_secrets s WHERE s.tenant = $1 AND s.id = $2::uuid AND
      (s.expires_at IS NULL OR s.expires_at > $3::bigint) RETURNING ${COLUMNS}`,
);

/** The signing secrets of a tenant that are valid, the newest first. */
export function listSigningSecrets(db: Queryable, tenant: string, now: number): Promise<SigningSecretRow[]> {
  return run<SigningSecretRow>(db, LIST, [tenant, now]);
}

/** The same with their encrypted values. */
export async function readSealedSigningSecrets(
  db: Queryable,
  tenant: string,
  now: number,
): Promise<SealedSigningSecret[]> {
  const rows = await run<SealedSigningSecret>(db, READ_SEALED, [tenant, now]);
  for (const row of rows) assertTenant(tenant, row);
  return rows;
}

/** A signing secret that is to be stored. */
export interface NewSigningSecretRow extends Sealed {
  readonly tenant: string;
  readonly id: string;
  readonly now: number;
}

/** What else is written in the transaction of a change. */
type Also<T> = (db: Queryable, row: T) => Promise<void>;

/** Adds a signing secret; the others of the tenant end at the given moment, if they do not end before. */
export function addSigningSecret(
  pool: Pool,
  secret: NewSigningSecretRow,
  othersUntil: number,
  also: Also<SigningSecretRow>,
): Promise<SigningSecretRow> {
  const { tenant, now } = secret;
  return inTransaction(pool, async (db) => {
    await run(db, LOCK, [tenant]);
    await run(db, FORGET, [tenant, now]);
    const valid = await listSigningSecrets(db, tenant, now);
    if (valid.length >= MAX_SIGNING_SECRETS) throw tooMany();
    await run(db, EXPIRE, [tenant, othersUntil]);
    return add(db, secret, also);
  });
}

/** The valid signing secrets of a tenant. If it has none, the given one is stored: once, however many ask at the same time. */
export function firstSigningSecret(
  pool: Pool,
  secret: NewSigningSecretRow,
  also: Also<SigningSecretRow>,
): Promise<SealedSigningSecret[]> {
  const { tenant, now } = secret;
  return inTransaction(pool, async (db) => {
    await run(db, LOCK, [tenant]);
    const valid = await readSealedSigningSecrets(db, tenant, now);
    return valid.length > 0 ? valid : [await add(db, secret, also)];
  });
}

async function add(
  db: Queryable,
  { tenant, id, keyId, sealed, now }: NewSigningSecretRow,
  also: Also<SigningSecretRow>,
): Promise<SealedSigningSecret> {
  const [row] = await run<SealedSigningSecret>(db, ADD, [tenant, id, keyId, sealed, now]);
  await also(db, row!);
  return row!;
}

/** Ends a signing secret that is valid; answers what it was. */
export function deleteSigningSecret(
  pool: Pool,
  { tenant, id, now }: Pick<NewSigningSecretRow, 'tenant' | 'id' | 'now'>,
  also: Also<SigningSecretRow>,
): Promise<SigningSecretRow | null> {
  return inTransaction(pool, async (db) => {
    await run(db, LOCK, [tenant]);
    const [row] = await run<SigningSecretRow>(db, DELETE, [tenant, id, now]);
    if (row) await also(db, row);
    return row ?? null;
  });
}

function tooMany(): PunctualError {
  const detail =
    `There are ${MAX_SIGNING_SECRETS} valid signing secrets already: end one with \`punctual signing-secret delete ID\`, ` +
    'or wait until one expires.';
  return new PunctualError('QUOTA_EXCEEDED', detail);
}
