import { PunctualError } from '../core/errors.js';
import type { Sealed } from '../core/secret-box.js';
import { assertTenant } from './assert-tenant.js';
import { inTransaction, type Pool, type Queryable, run, statement } from './database.js';
import { bytesOf, type Portion, type PortionSize, portionOf, readPortion } from './portion.js';

/**
 * Secrets of tenants, which nodes have encrypted. Any node writes them, those of a tenant one after the other, because the version
 * is a part of what is encrypted.
 */

/** A secret without its value. */
export interface SecretRow extends Record<string, unknown> {
  readonly tenant: string;
  readonly name: string;
  readonly version: number;
  readonly origins: readonly string[];
  readonly created_at: number;
  readonly created_by: string;
  readonly changed_at: number;
  readonly changed_by: string;
}

/** A secret with its encrypted value. */
export interface SealedSecret extends Sealed, Record<string, unknown> {
  readonly tenant: string;
  readonly name: string;
  readonly version: number;
  readonly origins: readonly string[];
}

const COLUMNS = `s.tenant, s.name, s.version, s.origins, s.created_at, s.created_by, s.changed_at, s.changed_by`;

/** By the tenant's name: those of others are hardly ever in the way. */
const LOCK = statement(
  'lock-secrets',
  `SELECT pg_advisory_xact_lock(hashtextextended('punctual secrets ' || $1, 0))`,
);

const FIND = statement(
  'find-secret',
  `
    SELECT ${COLUMNS}, (SELECT count(*) FROM punctual.secrets a WHERE a.tenant = $1) AS stock
    FROM (SELECT 1) one LEFT JOIN punctual.secrets s ON s.tenant = $1 AND s.name = $2`,
);

const LIST = statement(
  'list-secrets',
  portionOf(
    `SELECT ${COLUMNS}, ${bytesOf('s.origins')} + 256 AS bytes FROM punctual.secrets s
     WHERE s.tenant = $1 AND s.name > $2 ORDER BY s.name LIMIT $3::int + 1`,
    'name',
    { rows: '$3', bytes: '$4' },
  ),
);

const WRITE = statement(
  'write-secret',
  `
    INSERT INTO punctual.secrets AS s (tenant, name, version, key_id, sealed, origins, created_at, created_by, changed_at,
      changed_by)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $7, $8)
    ON CONFLICT (tenant, name) DO UPDATE SET version = excluded.version, key_id = excluded.key_id, sealed = excluded.sealed,
      origins = excluded.origins, changed_at = excluded.changed_at, changed_by = excluded.changed_by
    RETURNING ${COLUMNS}`,
);

const DELETE = statement(
  'delete-secret',
  `DELETE FROM punctual.secrets s WHERE s.tenant = $1 AND s.name = $2 RETURNING ${COLUMNS}`,
);

const READ_SEALED = statement(
  'read-sealed-secrets',
  `
    SELECT s.tenant, s.name, s.version, s.key_id AS "keyId", s.sealed, s.origins FROM punctual.secrets s
    WHERE s.tenant = $1 AND s.name = ANY ($2::text[])`,
);

/** The target of a live job; one that has ended, or waits in `later`, has no attempt that could need secrets. */
const READ_TARGET = statement(
  'read-target',
  'SELECT j.tenant, j.target FROM punctual.jobs j WHERE j.id = $2::uuid AND j.tenant = $1',
);

/** A portion of a tenant's secrets by name. */
export function listSecrets(
  db: Queryable,
  tenant: string,
  after: string,
  { rows, bytes }: PortionSize,
): Promise<Portion<SecretRow>> {
  return readPortion<SecretRow>(db, LIST, [tenant, after, rows, bytes]);
}

/** What is written about a secret. */
export interface NewSecret {
  readonly tenant: string;
  readonly name: string;
  readonly origins: readonly string[];
  readonly actor: string;
  readonly now: number;
  /** The most secrets that the tenant may have. */
  readonly maxSecrets: number;
  /** Encrypts the value for the version that it gets. */
  seal(version: number): Sealed;
}

/** A secret before and after a change. */
export interface SecretChanged {
  readonly before: SecretRow | null;
  /** Null when it was deleted. */
  readonly after: SecretRow | null;
}

/** What else is written in the transaction of a change. */
type Also = (db: Queryable, changed: SecretChanged) => Promise<void>;

/** Sets a secret. The same value again is a new version, too: whether it is the same is told to nobody. */
export function writeSecret(pool: Pool, secret: NewSecret, also: Also): Promise<SecretChanged> {
  const { tenant, name, origins, actor, now, maxSecrets } = secret;
  return inTransaction(pool, async (db) => {
    await run(db, LOCK, [tenant]);
    const [found] = await run<SecretRow & { readonly stock: number }>(db, FIND, [tenant, name]);
    const { stock, ...row } = found!;
    const before = row.name === null ? null : (row as SecretRow);
    if (before === null && stock >= maxSecrets)
      throw new PunctualError('QUOTA_EXCEEDED', `Tenant ${tenant} may have ${maxSecrets} secrets.`, {
        hint: 'Delete some with `punctual secret delete NAME`, or raise PUNCTUAL_MAX_SECRETS on the nodes.',
      });
    const version = (before?.version ?? 0) + 1;
    const { keyId, sealed } = secret.seal(version);
    const values = [tenant, name, version, keyId, sealed, origins, now, actor];
    const [after] = await run<SecretRow>(db, WRITE, values);
    const changed = { before, after: after! };
    await also(db, changed);
    return changed;
  });
}

/** Deletes a secret; answers what it was. */
export function deleteSecret(
  pool: Pool,
  { tenant, name }: Pick<NewSecret, 'tenant' | 'name'>,
  also: Also,
): Promise<SecretRow | null> {
  return inTransaction(pool, async (db) => {
    await run(db, LOCK, [tenant]);
    const [before] = await run<SecretRow>(db, DELETE, [tenant, name]);
    if (before) await also(db, { before, after: null });
    return before ?? null;
  });
}

/** Those of the secrets that the tenant has, encrypted. */
export async function readSealedSecrets(
  db: Queryable,
  tenant: string,
  names: readonly string[],
): Promise<SealedSecret[]> {
  const rows = await run<SealedSecret>(db, READ_SEALED, [tenant, names]);
  for (const row of rows) assertTenant(tenant, row);
  return rows;
}

/** The target of a live job as JSON text, null for the handler of its task; undefined if the tenant has no such job. */
export async function readTarget(
  db: Queryable,
  tenant: string,
  jobId: string,
): Promise<string | null | undefined> {
  type Row = { readonly tenant: string; readonly target: string | null } & Record<string, unknown>;
  const [row] = await run<Row>(db, READ_TARGET, [tenant, jobId]);
  if (row) assertTenant(tenant, row);
  return row?.target;
}
