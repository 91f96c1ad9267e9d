import type { Sealed } from '../core/secret-box.js';
import { inTransaction, type Pool, type Queryable, run, statement } from './database.js';

/**
 * What stands under which master key, and giving it to another one. Both tables are walked by the index of their keys, in bounded
 * portions, each a transaction of its own: work that breaks off has done a part, and goes on where it is called again.
 */

/** The most rows that are counted under one key, and the most keys that are told of. */
const MOST_COUNTED = 10_000;
const MOST_KEYS = 100;
/** Rows that one transaction encrypts anew. */
const PORTION = 200;

/** A row whose value is to be encrypted anew. */
export interface SealedRow extends Sealed, Record<string, unknown> {
  readonly tenant: string;
  readonly name: string;
  readonly version: number;
}

/** A table with encrypted values: how its rows are named, and which version they have. */
interface SealedTable {
  readonly table: string;
  readonly name: string;
  readonly type: string;
  readonly version: string;
}

/** What is asked and written about one such table. */
function statementsOf({ table, name, type, version }: SealedTable) {
  const from = `punctual.${table} s`;
  const noun = table.replace('_', '-');
  return {
    /** One look at the index per key, and bounded counts: there may be very many rows. */
    count: statement(
      `count-${noun}-by-key`,
      `
    WITH RECURSIVE ids AS (
      (SELECT s.key_id FROM ${from} ORDER BY s.key_id LIMIT 1)
      UNION ALL
      SELECT (SELECT s.key_id FROM ${from} WHERE s.key_id > i.key_id ORDER BY s.key_id LIMIT 1)
      FROM ids i WHERE i.key_id IS NOT NULL
    )
    SELECT i.key_id AS "keyId", (
        SELECT count(*) FROM (SELECT FROM ${from} WHERE s.key_id = i.key_id LIMIT ${MOST_COUNTED}) c) AS values
    FROM ids i WHERE i.key_id IS NOT NULL LIMIT ${MOST_KEYS}`,
    ),
    /** Rows that somebody else changes at this moment get the current key from them. */
    read: statement(
      `read-${noun}-of-key`,
      `
    SELECT s.tenant, s.${name}::text AS name, ${version} AS version, s.key_id AS "keyId", s.sealed FROM ${from}
    WHERE s.key_id = $1 AND (s.tenant, s.${name}) > ($2::text, $3::${type})
    ORDER BY s.tenant, s.${name} LIMIT ${PORTION} FOR UPDATE SKIP LOCKED`,
    ),
    write: statement(
      `rekey-${noun}`,
      `
    UPDATE punctual.${table} s SET key_id = $1, sealed = u.sealed
    FROM unnest($2::text[], $3::${type}[], $4::bytea[]) u(tenant, name, sealed)
    WHERE s.tenant = u.tenant AND s.${name} = u.name`,
    ),
  };
}

const TABLES = {
  secret: statementsOf({ table: 'secrets', name: 'name', type: 'text', version: 's.version' }),
  'signing-secret': statementsOf({ table: 'signing_secrets', name: 'id', type: 'uuid', version: '1' }),
} as const;

/** The kinds of encrypted values. */
export type SealedKind = keyof typeof TABLES;

/** All kinds of encrypted values. */
export const SEALED_KINDS = Object.keys(TABLES) as SealedKind[];

const FIRST_NAME: Readonly<Record<SealedKind, string>> = {
  secret: '',
  'signing-secret': '00000000-0000-0000-0000-000000000000',
};

/** How many values stand under each master key, counted up to a bound. */
export async function countByMasterKey(db: Queryable): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const kind of SEALED_KINDS) {
    const rows = await run<{ keyId: string; values: number }>(db, TABLES[kind].count, []);
    for (const { keyId, values } of rows) counts.set(keyId, (counts.get(keyId) ?? 0) + values);
  }
  return counts;
}

/** A position among the rows of one kind and one key. */
export interface RekeyPosition {
  readonly tenant: string;
  readonly name: string;
}

/** What one portion has come to. */
export interface RekeyedPortion {
  /** Rows that were encrypted anew. */
  readonly rekeyed: number;
  /** Rows that could not be opened. */
  readonly unreadable: number;
  /** Where to go on; null when there is no more of this kind under this key. */
  readonly next: RekeyPosition | null;
}

/** Encrypts the next rows under an old key anew. `reseal` answers null for what cannot be opened, which stays as it is. */
export function rekeyPortion(
  pool: Pool,
  kind: SealedKind,
  oldKeyId: string,
  after: RekeyPosition | null,
  reseal: (row: SealedRow) => Sealed | null,
  also: (db: Queryable, rekeyed: number) => Promise<void>,
): Promise<RekeyedPortion> {
  const { read, write } = TABLES[kind];
  return inTransaction(pool, async (db) => {
    const values = [oldKeyId, after?.tenant ?? '', after?.name ?? FIRST_NAME[kind]];
    const rows = await run<SealedRow>(db, read, values);
    const sealed = rows.flatMap((row) => {
      const anew = reseal(row);
      return anew ? [{ row, anew }] : [];
    });
    if (sealed.length > 0) {
      await run(db, write, [
        sealed[0]!.anew.keyId,
        sealed.map(({ row }) => row.tenant),
        sealed.map(({ row }) => row.name),
        sealed.map(({ anew }) => anew.sealed),
      ]);
      await also(db, sealed.length);
    }
    const last = rows.at(-1);
    const next = last && rows.length === PORTION ? { tenant: last.tenant, name: last.name } : null;
    return { rekeyed: sealed.length, unreadable: rows.length - sealed.length, next };
  });
}
