import type { AuditAction, AuditEntry, AuditOutcome, ChainLink } from '../core/audit.js';
import { firstUuidAt } from '../core/uuid.js';
import { entryValues, insertEntrySql } from './audit-entry.js';
import { type Pool, type Queryable, run, statement } from './database.js';
import {
  leaderStatement,
  leaderTransaction,
  RolledBackError,
  runAsLeader,
  type TermKey,
  WHILE_TERM_LASTS,
} from './leader-statement.js';
import { bytesOf, type Portion, type PortionSize, portionOf, readPortion } from './portion.js';

/** Writing, chaining, reading and removing entries of the audit. */

/** For transactions; the epoch is null where no term is needed. */
const ADD_ENTRY = statement('add-audit-entry', insertEntrySql(2, '$1::bigint'));

/** An entry of something that takes several statements: its outcome is unknown until it has ended. */
const BEGIN_ENTRY = leaderStatement(
  'begin-audit-entry',
  `answer AS (${insertEntrySql(4, '$2::bigint')} WHERE ${WHILE_TERM_LASTS} RETURNING id)`,
);

const END_ENTRY = leaderStatement(
  'end-audit-entry',
  `answer AS (
    UPDATE punctual.audit a SET outcome = $5::text, after = $6::json
    WHERE a.id = $4::uuid AND a.sequence IS NULL AND a.outcome = 'unknown' AND ${WHILE_TERM_LASTS}
    RETURNING a.id
  )`,
);

const ENTRY = `a.id, a.at, a.tenant, a.key_id AS "keyId", a.key_name AS "keyName", a.address, a.request_id AS "requestId",
      a.action, a.kind, a.subject, a.before, a.after, a.outcome`;

const LINKED = `${ENTRY}, a.sequence, encode(a.previous, 'hex') AS previous, encode(a.hash, 'hex') AS hash`;

/**
 * The end of the chain, and the entries that can be appended to it. Those of unknown outcome are, when the term that could end
 * them is over, or when they are so old that nobody does. `waits` tells whether others are left for later.
 */
const READ_UNCHAINED = statement(
  'read-unchained',
  `
    SELECT c.sequence AS "headSequence", encode(c.hash, 'hex') AS "headHash", EXISTS (
        SELECT 1 FROM punctual.audit w WHERE w.sequence IS NULL AND w.outcome = 'unknown') AS waits, e.*
    FROM punctual.audit_chain c LEFT JOIN LATERAL (
      SELECT ${ENTRY} FROM punctual.audit a
      WHERE a.sequence IS NULL AND (a.outcome <> 'unknown' OR a.epoch IS DISTINCT FROM $1::bigint OR a.at < $2::bigint)
      ORDER BY a.id LIMIT $3::int) e ON true
    ORDER BY e.id`,
);

const MOVE_HEAD = statement(
  'move-audit-head',
  `
    UPDATE punctual.audit_chain SET sequence = $2::bigint, hash = decode($3::text, 'hex')
    WHERE sequence = $1::bigint RETURNING sequence`,
);

/** The outcome is compared, because it may have become known since the entry was read. */
const CHAIN_ENTRIES = statement(
  'chain-audit-entries',
  `
    UPDATE punctual.audit a SET
      sequence = u.sequence, previous = decode(u.previous, 'hex'), hash = decode(u.hash, 'hex')
    FROM unnest($1::uuid[], $2::text[], $3::bigint[], $4::text[], $5::text[]) u(id, outcome, sequence, previous, hash)
    WHERE a.id BETWEEN u.id AND u.id AND a.sequence IS NULL AND a.outcome = u.outcome
    RETURNING a.id`,
);

/** The oldest entries, as far as all of them are older than the moment. */
const MOVE_ANCHOR = statement(
  'move-audit-anchor',
  `
    UPDATE punctual.audit_chain c SET removed_sequence = last.sequence, removed_hash = last.hash
    FROM (
      SELECT p.sequence, p.hash FROM (
        SELECT f.sequence, f.hash, bool_and(f.at < $1::bigint) OVER (ORDER BY f.sequence) AS is_old FROM (
          SELECT a.sequence, a.hash, a.at FROM punctual.audit a WHERE a.sequence IS NOT NULL
          ORDER BY a.sequence LIMIT $2::int) f) p
      WHERE p.is_old ORDER BY p.sequence DESC LIMIT 1) last
    RETURNING c.removed_sequence`,
);

const REMOVE_ENTRIES = statement(
  'remove-audit-entries',
  `
    DELETE FROM punctual.audit a
    WHERE a.sequence <= (SELECT c.removed_sequence FROM punctual.audit_chain c)`,
);

const READ_CHAIN_ENDS = statement(
  'read-audit-ends',
  `
    SELECT sequence, encode(hash, 'hex') AS hash, removed_sequence AS "removedSequence",
      encode(removed_hash, 'hex') AS "removedHash"
    FROM punctual.audit_chain`,
);

/** Each is null where nothing is asked for. */
const WANTED = `($2::bigint IS NULL OR a.at >= $2) AND ($3::bigint IS NULL OR a.at < $3)
        AND ($4::uuid IS NULL OR a.key_id = $4) AND ($5::text IS NULL OR a.action = $5)
        AND ($6::text IS NULL OR a.kind = $6) AND ($7::text IS NULL OR a.subject = $7)`;

const BYTES = `${bytesOf('a.before')} + ${bytesOf('a.after')} + 512`;

/** Lists of all tenants and of one are statements of their own, so that each follows its index. */
const OWNERS = { all: '$1::text IS NULL', one: 'a.tenant = $1::text' };

/** No entry is older than its id, so ids bound what is read for a time. */
const listNewestOf = (owner: keyof typeof OWNERS) =>
  statement(
    `list-audit-of-${owner}`,
    portionOf(
      `SELECT ${LINKED}, ${BYTES} AS bytes FROM punctual.audit a
       WHERE ${OWNERS[owner]} AND ${WANTED} AND a.id < $8::uuid AND a.id >= $11::uuid
       ORDER BY a.id DESC LIMIT $9::int + 1`,
      'id DESC',
      { rows: '$9', bytes: '$10' },
    ),
  );

const listChainOf = (owner: keyof typeof OWNERS) =>
  statement(
    `list-audit-chain-of-${owner}`,
    portionOf(
      `SELECT ${LINKED}, ${BYTES} AS bytes FROM punctual.audit a
       WHERE ${OWNERS[owner]} AND ${WANTED} AND a.sequence > $8::bigint ORDER BY a.sequence LIMIT $9::int + 1`,
      'sequence',
      { rows: '$9', bytes: '$10' },
    ),
  );

const LIST_NEWEST = { all: listNewestOf('all'), one: listNewestOf('one') };
const LIST_CHAIN = { all: listChainOf('all'), one: listChainOf('one') };

/** Entries that one transaction chains: some megabytes at most. */
const CHAINED_AT_ONCE = 200;
/** Entries that one transaction removes. */
const REMOVED_AT_ONCE = 1_000;

/** A stored entry. */
export interface AuditRow extends AuditEntry, Record<string, unknown> {
  readonly sequence: number | null;
  readonly previous: string | null;
  readonly hash: string | null;
}

/** The place of an entry in the chain; null while it has none. */
export function linkOf({ sequence, previous, hash }: AuditRow): ChainLink | null {
  return sequence === null ? null : { sequence, previous: previous!, hash: hash! };
}

/** Writes an entry in the transaction of its effect. */
export async function addEntry(db: Queryable, entry: AuditEntry, epoch: number | null): Promise<void> {
  await run(db, ADD_ENTRY, [epoch, ...entryValues(entry)]);
}

/** Writes the entry of something that begins now. */
export async function beginEntry(db: Queryable, term: TermKey, entry: AuditEntry): Promise<void> {
  await runAsLeader(db, term, BEGIN_ENTRY, entryValues(entry));
}

/** Writes how it ended; answers false when that is too late, because the entry was chained meanwhile. */
export async function endEntry(
  db: Queryable,
  term: TermKey,
  id: string,
  outcome: Exclude<AuditOutcome, 'unknown'>,
  after: string | null,
): Promise<boolean> {
  return (await runAsLeader(db, term, END_ENTRY, [id, outcome, after])).length > 0;
}

/** What can be appended to the chain. */
interface Unchained {
  readonly head: Pick<ChainLink, 'sequence' | 'hash'>;
  readonly entries: readonly AuditEntry[];
  /** Whether there may be more, now or later. */
  readonly more: boolean;
}

/** The oldest entries without a place in the chain. Those of unknown outcome count from `givenUpBefore` on. */
export async function readUnchained(db: Queryable, epoch: number, givenUpBefore: number): Promise<Unchained> {
  type Head = { headSequence: number; headHash: string; waits: boolean };
  const rows = await run<AuditRow & Head>(db, READ_UNCHAINED, [epoch, givenUpBefore, CHAINED_AT_ONCE]);
  const { headSequence, headHash, waits } = rows[0]!;
  const entries = rows.filter(({ id }) => id !== null);
  const more = waits || entries.length === CHAINED_AT_ONCE;
  return { head: { sequence: headSequence, hash: headHash }, entries, more };
}

/** Appends entries to the chain, all or none. */
export async function chainEntries(
  pool: Pool,
  term: TermKey,
  head: Pick<ChainLink, 'sequence' | 'hash'>,
  entries: readonly AuditEntry[],
  links: readonly ChainLink[],
): Promise<void> {
  const last = links.at(-1);
  if (!last) return;
  await leaderTransaction(pool, term, async (db) => {
    const moved = await run(db, MOVE_HEAD, [head.sequence, last.sequence, last.hash]);
    if (moved.length === 0) throw new RolledBackError('the chain of the audit ends elsewhere');
    const chained = await run(db, CHAIN_ENTRIES, [
      entries.map(({ id }) => id),
      entries.map(({ outcome }) => outcome),
      links.map(({ sequence }) => sequence),
      links.map(({ previous }) => previous),
      links.map(({ hash }) => hash),
    ]);
    if (chained.length !== entries.length)
      throw new RolledBackError('an entry of the audit was ended while it was chained');
  });
}

/** Removes a portion of the entries that are older than the moment; answers whether there may be more. */
export async function removeEntries(pool: Pool, term: TermKey, before: number): Promise<boolean> {
  return leaderTransaction(pool, term, async (db) => {
    const moved = await run(db, MOVE_ANCHOR, [before, REMOVED_AT_ONCE]);
    if (moved.length === 0) return false;
    const { rowCount } = await db.query({ ...REMOVE_ENTRIES, values: [] });
    return rowCount === REMOVED_AT_ONCE;
  });
}

/** Both ends of a chain: the last entry that was removed, and the newest. */
export interface ChainEnds {
  readonly anchor: Pick<ChainLink, 'sequence' | 'hash'>;
  readonly head: Pick<ChainLink, 'sequence' | 'hash'>;
}

/** Where the chain begins and ends. */
export async function readChainEnds(db: Queryable): Promise<ChainEnds> {
  type Row = Record<string, unknown> & {
    sequence: number;
    hash: string;
    removedSequence: number;
    removedHash: string;
  };
  const [row] = await run<Row>(db, READ_CHAIN_ENDS, []);
  const { sequence, hash, removedSequence, removedHash } = row!;
  return {
    anchor: { sequence: Number(removedSequence), hash: removedHash },
    head: { sequence: Number(sequence), hash },
  };
}

/** Which entries to read. */
export interface AuditFilter {
  /** Null for those of all tenants. */
  readonly tenant: string | null;
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  readonly key?: string | undefined;
  readonly action?: AuditAction | undefined;
  readonly kind?: string | undefined;
  readonly subject?: string | undefined;
}

function valuesOf({ tenant, since, until, key, action, kind, subject }: AuditFilter): unknown[] {
  return [tenant, since ?? null, until ?? null, key ?? null, action ?? null, kind ?? null, subject ?? null];
}

function ownerOf({ tenant }: AuditFilter): keyof typeof OWNERS {
  return tenant === null ? 'all' : 'one';
}

/** A portion of the entries with ids below the given one, newest first. */
export function listNewest(
  db: Queryable,
  filter: AuditFilter,
  below: string,
  { rows, bytes }: PortionSize,
): Promise<Portion<AuditRow>> {
  const from = firstUuidAt(filter.since ?? 0);
  return readPortion(db, LIST_NEWEST[ownerOf(filter)], [...valuesOf(filter), below, rows, bytes, from]);
}

/** A portion of the entries after the given place in the chain, in its order. */
export function listChain(
  db: Queryable,
  filter: AuditFilter,
  after: number,
  { rows, bytes }: PortionSize,
): Promise<Portion<AuditRow>> {
  return readPortion(db, LIST_CHAIN[ownerOf(filter)], [...valuesOf(filter), after, rows, bytes]);
}
