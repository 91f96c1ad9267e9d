import { type Queryable, run, statement } from './database.js';

/**
 * Finding the jobs of keys that begin alike. Where the database compares texts by their bytes (locale C, as the embedded
 * one does), such keys are one range of the index of keys. Other locales mix them with different keys, so there is no
 * range; and an index for this alone would cost every submission with a key.
 */

/** The most jobs that are found by the index; beyond that, the jobs are searched instead. */
const MOST = 2_000;

/** Whether texts are compared by their bytes. Before Postgres 15 there was only one kind of locale. */
const BY_BYTES = `(
      SELECT CASE coalesce(to_jsonb(d) ->> 'datlocprovider', 'c') WHEN 'b' THEN true
        WHEN 'c' THEN d.datcollate IN ('C', 'POSIX') ELSE false END
      FROM pg_database d WHERE d.datname = current_database())`;

const FIND_KEYS_BY_PREFIX = statement(
  'find-keys-by-prefix',
  `
    SELECT b.by_bytes AS "byBytes", f.place, f.id, f.counts FROM (SELECT ${BY_BYTES} AS by_bytes) b LEFT JOIN LATERAL (
      (SELECT 'keys' AS place, k.job AS id, true AS counts FROM punctual.keys k
       WHERE b.by_bytes AND k.tenant = $1 AND k.key >= $2 AND ($3::text IS NULL OR k.key < $3)
       ORDER BY k.tenant, k.key LIMIT $4::int)
      UNION ALL
      (SELECT 'later', l.id, l.submission IS NOT NULL FROM punctual.later l
       WHERE b.by_bytes AND l.tenant = $1 AND l.key >= $2 AND ($3 IS NULL OR l.key < $3)
       ORDER BY l.tenant, l.key LIMIT $4::int)) f ON true`,
);

/** The jobs that have keys with this prefix; null if there is no index for that, or if there are too many. */
export async function findJobsByKeyPrefix(
  db: Queryable,
  tenant: string,
  prefix: string,
  most = MOST,
): Promise<string[] | null> {
  const values = [tenant, prefix, endOfPrefix(prefix), most + 1];
  const rows = await run<PrefixRow>(db, FIND_KEYS_BY_PREFIX, values);
  const isCut = (place: string) => rows.filter((row) => row.place === place).length > most;
  if (!rows[0]!.byBytes || isCut('keys') || isCut('later')) return null;
  return rows.flatMap(({ id, counts }) => (id !== null && counts ? [id] : []));
}

interface PrefixRow extends Record<string, unknown> {
  readonly byBytes: boolean;
  readonly place: 'keys' | 'later' | null;
  readonly id: string | null;
  /** Not so for a job in `later` that was parsed: whether it has its key is known from the keys. */
  readonly counts: boolean | null;
}

const HIGHEST = 0x10ffff;

/** The first text above all that begin with the prefix, in the order of code points; null if there is none. */
export function endOfPrefix(prefix: string): string | null {
  const points = Array.from(prefix, (character) => character.codePointAt(0)!);
  while (points.at(-1) === HIGHEST) points.pop();
  const last = points.pop();
  if (last === undefined) return null;
  // There are no characters between these two: the halves of surrogate pairs.
  const next = last === 0xd7ff ? 0xe000 : last + 1;
  return [...points, next].map((point) => String.fromCodePoint(point)).join('');
}
