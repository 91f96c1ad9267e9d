import type { ArtifactKind } from '../core/artifact.js';
import { PunctualError } from '../core/errors.js';
import { overQuota } from '../core/quotas.js';
import { isUuid } from '../core/uuid.js';
import { assertTenant } from './assert-tenant.js';
import { withBytesLocked } from './bytes-lock.js';
import { inTransaction, type Pool, type Queryable, run, statement } from './database.js';
import { type Portion, type PortionSize, portionOf, readPortion } from './portion.js';

/**
 * The rows of artifacts. Any node writes them; announcements of one tenant are made one after the other, because of versions and
 * quotas. The bytes are in a store that knows hashes only, and no transaction covers both. So bytes are removed, and rows become
 * `ready`, under a lock on the hash: whoever makes a row ready has seen the bytes, and nobody removes bytes that a ready row has.
 */

/** An artifact as it is stored. */
export interface ArtifactRow extends Record<string, unknown> {
  readonly id: string;
  readonly tenant: string;
  readonly name: string | null;
  readonly version: string | null;
  readonly sha256: string;
  readonly size: number;
  readonly runnable: boolean;
  readonly kind: ArtifactKind | null;
  readonly machine: string | null;
  readonly state: 'pending' | 'ready' | 'gone';
  readonly created_at: number;
  readonly created_by: string;
  readonly ready_at: number | null;
  readonly expires_at: number;
  readonly job: string | null;
  readonly output: string | null;
}

const COLUMNS = `a.id, a.tenant, a.name, a.version, a.sha256, a.size, a.runnable, a.kind, a.machine, a.state, a.created_at,
      a.created_by, a.ready_at, a.expires_at, a.job, a.output`;

const LOCK_TENANT = statement(
  'lock-artifacts',
  `SELECT pg_advisory_xact_lock(hashtextextended('punctual artifacts ' || $1, 0))`,
);

const FIND = statement(
  'find-artifact',
  `SELECT ${COLUMNS} FROM punctual.artifacts a WHERE a.id = $2::uuid AND a.tenant = $1 AND a.state <> 'gone'`,
);

const FIND_VERSION = statement(
  'find-artifact-version',
  `SELECT ${COLUMNS} FROM punctual.artifacts a WHERE a.tenant = $1 AND a.name = $2 AND a.version = $3`,
);

const FIND_NEWEST = statement(
  'find-newest-artifact',
  `
    SELECT ${COLUMNS} FROM punctual.artifacts a WHERE a.tenant = $1 AND a.name = $2 AND a.state = 'ready'
    ORDER BY a.ready_at DESC, a.id DESC LIMIT 1`,
);

/** One without a name, by its bytes. */
const FIND_UNNAMED = statement(
  'find-unnamed-artifact',
  `
    SELECT ${COLUMNS} FROM punctual.artifacts a
    WHERE a.sha256 = $2 AND a.tenant = $1 AND a.name IS NULL AND a.job IS NULL AND a.state <> 'gone' AND a.size = $3::bigint
      AND a.runnable = $4::boolean
    ORDER BY a.id LIMIT 1`,
);

const FIND_PENDING = statement(
  'find-pending-uploads',
  `SELECT a.id FROM punctual.artifacts a WHERE a.id = ANY ($1::uuid[]) AND a.state = 'pending'`,
);

const SUM_BYTES = statement(
  'sum-artifact-bytes',
  'SELECT coalesce(sum(a.size), 0)::bigint AS bytes FROM punctual.artifacts a WHERE a.tenant = $1',
);

const ADD = statement(
  'add-artifact',
  `
    INSERT INTO punctual.artifacts AS a (id, tenant, name, version, sha256, size, runnable, created_at, created_by, expires_at,
      used_at)
    VALUES ($1::uuid, $2, $3, $4, $5, $6::bigint, $7::boolean, $8::bigint, $9, $10::bigint, $8::bigint)
    RETURNING ${COLUMNS}`,
);

/** Until its bytes have arrived, an artifact is what was announced last, by whoever did so. */
const ANNOUNCE_AGAIN = statement(
  'announce-artifact-again',
  `
    UPDATE punctual.artifacts a SET sha256 = $2, size = $3::bigint, runnable = $4::boolean,
      expires_at = greatest(a.expires_at, $5::bigint), used_at = $6::bigint, created_by = $7
    WHERE a.id = $1::uuid AND a.state = 'pending'
    RETURNING ${COLUMNS}`,
);

const MAKE_READY = statement(
  'make-artifact-ready',
  `
    UPDATE punctual.artifacts a SET state = 'ready', ready_at = $4::bigint, kind = $5, machine = $6, used_at = $4::bigint
    WHERE a.id = $2::uuid AND a.tenant = $1 AND a.sha256 = $3 AND a.state = 'pending'
    RETURNING ${COLUMNS}`,
);

/** Its name is free again at once. */
const MAKE_GONE = statement(
  'make-artifact-gone',
  `
    UPDATE punctual.artifacts a SET state = 'gone', name = NULL, version = NULL, job = NULL
    WHERE a.id = $2::uuid AND a.tenant = $1 AND a.state <> 'gone'
    RETURNING a.id, a.sha256`,
);

/** While nobody has uploaded it, whoever announced it last may take that back. */
const WITHDRAW = statement(
  'withdraw-artifact',
  `
    UPDATE punctual.artifacts a SET state = 'gone', name = NULL, version = NULL
    WHERE a.id = $2::uuid AND a.tenant = $1 AND a.state = 'pending' AND a.created_by = $3
    RETURNING a.sha256`,
);

const IS_NEEDED = statement(
  'are-bytes-needed',
  `SELECT 1 AS needed FROM punctual.artifacts a WHERE a.sha256 = $1 AND a.state = 'ready' LIMIT 1`,
);

const DELETE_GONE = statement(
  'delete-gone-artifacts',
  `DELETE FROM punctual.artifacts a WHERE a.sha256 = $1 AND a.state = 'gone'`,
);

const LIST = statement(
  'list-artifacts',
  portionOf(
    `SELECT ${COLUMNS}, 512 AS bytes FROM punctual.artifacts a
    WHERE a.tenant = $1 AND a.id < $2::uuid AND a.state <> 'gone' AND ($3::text IS NULL OR a.name = $3)
      AND ($4::text IS NULL OR a.version = $4) AND ($5::uuid IS NULL OR a.job = $5::uuid)
      AND ($6::text IS NULL OR a.state = $6)
    ORDER BY a.id DESC LIMIT $7::int + 1`,
    'id DESC',
    { rows: '$7', bytes: '$8' },
  ),
);

/** What one job left, by the index of outputs. */
const LIST_OUTPUTS = statement(
  'list-job-outputs',
  portionOf(
    `SELECT ${COLUMNS}, 512 AS bytes FROM punctual.artifacts a
    WHERE a.job = $3::uuid AND a.tenant = $1 AND a.id < $2::uuid AND a.state <> 'gone'
    ORDER BY a.id DESC LIMIT $4::int + 1`,
    'id DESC',
    { rows: '$4', bytes: '$5' },
  ),
);

/** The artifact, or null when the tenant has none of that id. */
export async function findArtifact(db: Queryable, tenant: string, id: string): Promise<ArtifactRow | null> {
  return found(tenant, await run<ArtifactRow>(db, FIND, [tenant, id]));
}

/** The artifact of this name and version, whatever its state. */
export async function findVersion(
  db: Queryable,
  tenant: string,
  name: string,
  version: string,
): Promise<ArtifactRow | null> {
  return found(tenant, await run<ArtifactRow>(db, FIND_VERSION, [tenant, name, version]));
}

/** The version of this name whose bytes came last. */
export async function findNewest(db: Queryable, tenant: string, name: string): Promise<ArtifactRow | null> {
  return found(tenant, await run<ArtifactRow>(db, FIND_NEWEST, [tenant, name]));
}

function found(tenant: string, [row]: readonly ArtifactRow[]): ArtifactRow | null {
  if (row) assertTenant(tenant, row);
  return row ?? null;
}

/** Those of the uploads, of whatever tenant, whose artifacts wait for their bytes. */
export async function findPendingUploads(db: Queryable, uploads: readonly string[]): Promise<string[]> {
  const ids = uploads.filter(isUuid);
  if (ids.length === 0) return [];
  const rows = await run<{ id: string }>(db, FIND_PENDING, [ids]);
  return rows.map(({ id }) => id);
}

/** Which artifacts to list; null is any. */
export interface ArtifactFilter {
  readonly name: string | null;
  readonly version: string | null;
  readonly job: string | null;
  readonly state: string | null;
}

/** Artifacts with ids below `before`, newest first. */
export function listArtifacts(
  db: Queryable,
  tenant: string,
  before: string,
  { name, version, job, state }: ArtifactFilter,
  { rows, bytes }: PortionSize,
): Promise<Portion<ArtifactRow>> {
  return readPortion<ArtifactRow>(db, LIST, [tenant, before, name, version, job, state, rows, bytes]);
}

/** What a job has left, with ids below `before`, newest first. */
export function listOutputs(
  db: Queryable,
  tenant: string,
  before: string,
  job: string,
  { rows, bytes }: PortionSize,
): Promise<Portion<ArtifactRow>> {
  return readPortion<ArtifactRow>(db, LIST_OUTPUTS, [tenant, before, job, rows, bytes]);
}

/** What is announced. */
export interface NewArtifact {
  readonly id: string;
  readonly tenant: string;
  readonly name: string | null;
  readonly version: string | null;
  readonly sha256: string;
  readonly size: number;
  readonly runnable: boolean;
  readonly createdBy: string;
  readonly now: number;
  /** Until when it may be uploaded. */
  readonly expiresAt: number;
  /** The quota of the tenant. */
  readonly mostBytes: number | null;
}

/** An announced artifact: a new one, or the one that was announced before. */
export interface Announced {
  readonly row: ArtifactRow;
  /** Whether anything was written. */
  readonly isNew: boolean;
  /** Whether other bytes were announced before; parts of those may have arrived. */
  readonly isOther: boolean;
}

/** Until the end of the transaction, nobody else adds artifacts of the tenant where its quota counts. */
export async function lockArtifacts(db: Queryable, tenant: string): Promise<void> {
  await run(db, LOCK_TENANT, [tenant]);
}

/** Announces an artifact; `also` is done in the same transaction if it is a new one, or one that was announced with other bytes. Throws ARTIFACT_EXISTS or QUOTA_EXCEEDED. */
export function announceArtifact(
  pool: Pool,
  artifact: NewArtifact,
  also: (db: Queryable, row: ArtifactRow, before: ArtifactRow | null) => Promise<void>,
): Promise<Announced> {
  const { id, tenant, name, version, sha256, size, runnable, createdBy, now, expiresAt } = artifact;
  return inTransaction(pool, async (db) => {
    await lockArtifacts(db, tenant);
    const before = await findAnnounced(db, artifact);
    if (before?.state === 'ready') {
      if (before.sha256 === sha256 && before.runnable === runnable)
        return { row: before, isNew: false, isOther: false };
      const what = before.sha256 === sha256 ? 'with another `runnable`' : 'with other bytes';
      const detail = `${name}@${version} was uploaded already, ${what}; versions never change.`;
      throw new PunctualError('ARTIFACT_EXISTS', detail);
    }
    await mustHaveRoom(db, artifact, before?.size ?? 0);
    if (before) {
      const again = [before.id, sha256, size, runnable, expiresAt, now, createdBy];
      const [row] = await run<ArtifactRow>(db, ANNOUNCE_AGAIN, again);
      // Its bytes may have arrived since it was read.
      if (!row) throw new PunctualError('UPLOAD_DONE', `${before.id} was uploaded at this moment.`);
      const isSame = before.sha256 === sha256 && before.size === size && before.runnable === runnable;
      if (!isSame) await also(db, row, before);
      return { row, isNew: false, isOther: before.sha256 !== sha256 };
    }
    const values = [id, tenant, name, version, sha256, size, runnable, now, createdBy, expiresAt];
    const [row] = await run<ArtifactRow>(db, ADD, values);
    await also(db, row!, null);
    return { row: row!, isNew: true, isOther: false };
  });
}

async function findAnnounced(
  db: Queryable,
  { tenant, name, version, sha256, size, runnable }: NewArtifact,
): Promise<ArtifactRow | null> {
  if (name !== null) return findVersion(db, tenant, name, version!);
  return found(tenant, await run<ArtifactRow>(db, FIND_UNNAMED, [tenant, sha256, size, runnable]));
}

async function mustHaveRoom(
  db: Queryable,
  { tenant, size, mostBytes }: Pick<NewArtifact, 'tenant' | 'size' | 'mostBytes'>,
  freed: number,
): Promise<void> {
  if (mostBytes === null) return;
  const [sum] = await run<{ bytes: number }>(db, SUM_BYTES, [tenant]);
  const used = sum!.bytes - freed;
  if (used + size <= mostBytes) return;
  const detail = `Tenant ${tenant} may have ${mostBytes} bytes of artifacts, of which ${used} are used; ${size} more do not fit.`;
  throw overQuota('artifactBytes', mostBytes, detail);
}

/** What the check of the bytes has found. */
export interface CheckedKind {
  readonly kind: ArtifactKind;
  readonly machine: string | null;
}

/**
 * Notes that the bytes of an artifact are there. `areThere` looks into the store, under the lock that keeps others from removing
 * them. Answers null if the artifact is gone, was announced anew with other bytes, or is ready already.
 */
export function makeReady(
  pool: Pool,
  { tenant, id, sha256 }: Pick<ArtifactRow, 'tenant' | 'id' | 'sha256'>,
  { kind, machine }: CheckedKind,
  now: number,
  areThere: (signal: AbortSignal) => Promise<void>,
  also: (db: Queryable, row: ArtifactRow) => Promise<void>,
): Promise<ArtifactRow | null> {
  return withBytesLocked(pool, sha256, async (db, askStore) => {
    await askStore(areThere);
    const [row] = await run<ArtifactRow>(db, MAKE_READY, [tenant, id, sha256, now, kind, machine]);
    if (row) await also(db, row);
    return row ?? null;
  });
}

/** Nobody is shown the artifact any more; answers with the hash of its bytes, null if it was not there. */
export async function makeGone(db: Queryable, tenant: string, id: string): Promise<string | null> {
  const [row] = await run<{ sha256: string }>(db, MAKE_GONE, [tenant, id]);
  return row?.sha256 ?? null;
}

/** The same for one that is not uploaded yet, and was announced by this one; null if it is another. */
export async function withdraw(
  db: Queryable,
  tenant: string,
  id: string,
  actor: string,
): Promise<string | null> {
  const [row] = await run<{ sha256: string }>(db, WITHDRAW, [tenant, id, actor]);
  return row?.sha256 ?? null;
}

/** Removes bytes unless an artifact has them, and then the rows of artifacts that are gone and had them. */
export function forgetBytes(
  pool: Pool,
  sha256: string,
  remove: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  return withBytesLocked(pool, sha256, async (db, askStore) => {
    const [needed] = await run(db, IS_NEEDED, [sha256]);
    if (!needed) await askStore(remove);
    await run(db, DELETE_GONE, [sha256]);
  });
}
