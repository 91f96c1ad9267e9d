import { type AnnouncedArtifact, partsOf } from '../core/artifact.js';
import { type AuditAction, type AuditAuthor, auditEntry } from '../core/audit.js';
import { invalid, PunctualError } from '../core/errors.js';
import {
  AnnouncedArtifact as Announced,
  ArtifactInput,
  ArtifactPage,
  ArtifactQuery,
  ArtifactWithUses,
} from '../core/schemas/artifact.js';
import { IdPath } from '../core/schemas/query.js';
import { signUpload } from '../core/tokens.js';
import { LAST_UUID, uuidv7 } from '../core/uuid.js';
import { usesOf } from '../store/artifact-uses.js';
import {
  type ArtifactRow,
  announceArtifact,
  findArtifact,
  listArtifacts,
  withdraw,
} from '../store/artifacts.js';
import { addEntry } from '../store/audit.js';
import type { Queryable } from '../store/database.js';
import { removeArtifact } from './artifact-removal.js';
import { auditView, noArtifact, uploadedView, viewOfArtifact } from './artifact-view.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { writePage } from './page-text.js';
import { forbidden, limitsOf } from './restrictions.js';
import { Answer, type Call, json, type Route, route } from './route.js';
import type { Shard } from './shard.js';

/** Artifacts of a list that one statement reads. */
const PORTION = 200;
/** Things that use an artifact, of those that are named. */
const MOST_USES = 20;

/** Artifacts of a tenant: announcing, reading, removing. The bytes go other ways: see `artifact-uploads.ts`. */
export const artifactRoutes: readonly Route[] = [
  route({
    id: 'announceArtifact',
    audit: 'artifact.create',
    method: 'POST',
    path: '/v1/artifacts',
    tag: 'artifacts',
    summary:
      'Announce an artifact and get an address for its upload. The same announcement again answers with the same artifact, and ' +
      'says which parts have arrived; 200 and no address if it is there already.',
    scope: 'submit',
    body: json(ArtifactInput),
    answers: { 201: Announced, 200: Announced },
    idempotent: 'the same name, version and hash are the same artifact',
    repeatable: true,
    run: async ({ node, caller, body, call }) => {
      mustReachArtifacts(caller);
      if ((body.name === undefined) !== (body.version === undefined)) {
        const missing = body.name === undefined ? 'name' : 'version';
        throw invalid([
          { pointer: `/${missing}`, detail: 'name and version go together: give both or neither' },
        ]);
      }
      const { maxArtifactBytes, uploadTime } = node.config;
      if (body.size > maxArtifactBytes)
        throw new PunctualError('ARTIFACT_TOO_LARGE', `An artifact may have ${maxArtifactBytes} bytes.`);
      const { tenant, actor } = caller;
      const shard = node.shardOf(tenant);
      const now = shard.clock.now();
      const { row, isNew, isOther } = await announceArtifact(
        shard.pool,
        {
          ...{ id: uuidv7(now), tenant, name: body.name ?? null, version: body.version ?? null },
          ...{ sha256: body.sha256, size: body.size, runnable: body.runnable ?? true },
          ...{ createdBy: actor, now, expiresAt: now + uploadTime },
          mostBytes: (await shard.quotas.of(tenant))?.artifactBytes ?? null,
        },
        (db, made, before) => noteArtifact(db, shard, call.author, 'artifact.create', before, made),
      );
      shard.currentLeader()?.noteEntry();
      // Parts of the bytes that were announced before would be taken for parts of these.
      if (isOther) await node.artifacts.abandon(row.id);
      const view = await announcedView(node, shard, row, call, body.direct ?? false);
      return new Answer(isNew ? 201 : 200, { ...view, isNew });
    },
  }),
  route({
    id: 'listArtifacts',
    method: 'GET',
    path: '/v1/artifacts',
    tag: 'artifacts',
    summary: 'List the artifacts, newest first.',
    scope: 'read',
    query: ArtifactQuery,
    answers: { 200: ArtifactPage },
    run: ({ node, caller, query: { limit, after = LAST_UUID, name, version, job, state } }) => {
      const { tenant } = caller;
      const { reads } = node.shardOf(tenant);
      const filter = { name: name ?? null, version: version ?? null, job: job ?? null, state: state ?? null };
      const isShown = limitsOf(caller) === undefined;
      return writePage<ArtifactRow>(limit, {
        portion: PORTION,
        read: (last, size) =>
          reads.read(tenant, (db) => listArtifacts(db, tenant, last?.id ?? after, filter, size)),
        isShown: () => isShown,
        write: (row) => JSON.stringify(viewOfArtifact(row)),
        cursor: (row) => row.id,
      });
    },
  }),
  route({
    id: 'getArtifact',
    method: 'GET',
    path: '/v1/artifacts/:id',
    tag: 'artifacts',
    summary: 'Read an artifact, and what names it.',
    scope: 'read',
    params: IdPath,
    answers: { 200: ArtifactWithUses },
    run: async ({ node, caller, params: { id } }) => {
      const row = await mustFind(node, caller, id);
      const shard = node.shardOf(caller.tenant);
      return { ...viewOfArtifact(row), usedBy: await usesOf(shard.pool, row, MOST_USES) };
    },
  }),
  route({
    id: 'deleteArtifact',
    audit: 'artifact.delete',
    method: 'DELETE',
    path: '/v1/artifacts/:id',
    tag: 'artifacts',
    summary: 'Remove an artifact that no job, schedule, task or definition names.',
    scope: 'admin',
    params: IdPath,
    answers: { 204: 'The artifact is gone.' },
    run: async ({ node, caller, params: { id }, call }) => {
      const row = await mustFind(node, caller, id);
      const shard = node.shardOf(caller.tenant);
      await removeArtifact(node, shard, row, (db) =>
        noteArtifact(db, shard, call.author, 'artifact.delete', row, null),
      );
      shard.currentLeader()?.noteEntry();
    },
  }),
  route({
    id: 'withdrawArtifact',
    audit: 'artifact.delete',
    method: 'DELETE',
    path: '/v1/artifacts/:id/announcement',
    tag: 'artifacts',
    summary:
      'Take back the announcement of an artifact that is not uploaded yet and that nothing names, with a key of the name that announced it last.',
    scope: 'submit',
    params: IdPath,
    answers: { 204: 'The artifact is gone.' },
    run: async ({ node, caller, params: { id }, call }) => {
      const row = await mustFind(node, caller, id);
      mustBeWithdrawable(row, caller);
      const shard = node.shardOf(caller.tenant);
      await removeArtifact(
        node,
        shard,
        row,
        (db) => noteArtifact(db, shard, call.author, 'artifact.delete', row, null),
        async (db) => {
          const sha256 = await withdraw(db, row.tenant, id, caller.actor);
          // It may have been uploaded since it was read, or announced by somebody else.
          const now = sha256 === null ? await findArtifact(db, row.tenant, id) : null;
          if (now !== null) mustBeWithdrawable(now, caller);
          return sha256;
        },
      );
      shard.currentLeader()?.noteEntry();
    },
  }),
];

/** Only who announced it last takes it back, and only while it is not uploaded. */
function mustBeWithdrawable({ id, created_by: by, state }: ArtifactRow, { actor }: Caller): void {
  if (by !== actor) throw new PunctualError('FORBIDDEN', `Artifact ${id} was announced by somebody else.`);
  if (state !== 'pending') throw new PunctualError('UPLOAD_DONE', `Artifact ${id} is uploaded.`);
}

/** An announced artifact, with the address of its upload. */
async function announcedView(
  node: NodeContext,
  shard: Shard,
  row: ArtifactRow,
  call: Pick<Call, 'origin'>,
  direct: boolean,
): Promise<Omit<AnnouncedArtifact, 'isNew'>> {
  if (row.state === 'ready') return uploadedView(row);
  const { id, tenant, sha256, size, expires_at: until } = row;
  const { artifacts, secret } = node;
  const view = viewOfArtifact(row);
  const now = shard.clock.now();
  const parts = partsOf(size);
  const straight =
    direct && parts === null ? await artifacts.directUpload(id, { sha256, size }, until - now) : null;
  if (straight) {
    const { url: uploadUrl, headers: uploadHeaders } = straight;
    return { ...view, uploadUrl, uploadHeaders, parts: null, mustComplete: true };
  }
  const token = signUpload(secret, { tenant, artifact: id, sha256, size, until }, now);
  return {
    ...{ ...view, uploadUrl: addressOf(node, call, `/v1/artifacts/${id}/upload?token=${token}`) },
    uploadHeaders: {},
    parts: parts && { ...parts, arrived: (await artifacts.parts(id)).map(({ number }) => number) },
    mustComplete: parts !== null,
  };
}

/** A path of this node as the client reaches it. */
export function addressOf(
  { config: { publicUrl, basePath } }: NodeContext,
  { origin }: Pick<Call, 'origin'>,
  path: string,
): string {
  if (publicUrl !== '') return publicUrl.replace(/\/+$/, '') + path;
  return `${origin}${basePath === '' ? '' : `/${basePath.replace(/^\/+|\/+$/g, '')}`}${path}`;
}

/** Artifacts are in no queue and of no task: for a key that is restricted to some, they do not exist. */
function mustReachArtifacts(caller: Caller): void {
  if (limitsOf(caller) !== undefined)
    throw forbidden('The key is restricted to queues or tasks; artifacts belong to the whole tenant.');
}

/** The artifact; throws ARTIFACT_NOT_FOUND. */
export async function mustFind(node: NodeContext, caller: Caller, id: string): Promise<ArtifactRow> {
  const { tenant } = caller;
  const { reads } = node.shardOf(tenant);
  const row =
    limitsOf(caller) === undefined ? await reads.read(tenant, (db) => findArtifact(db, tenant, id)) : null;
  if (!row) throw noArtifact(id);
  return row;
}

/** Writes the entry of the audit about an artifact. */
export async function noteArtifact(
  db: Queryable,
  { clock }: Shard,
  author: AuditAuthor,
  action: AuditAction,
  before: ArtifactRow | null,
  after: ArtifactRow | null,
): Promise<void> {
  const { tenant, id } = (after ?? before)!;
  const views = { before: before && auditView(before), after: after && auditView(after) };
  const subject = { kind: 'artifact', name: id, tenant } as const;
  await addEntry(db, auditEntry(author, clock.now(), action, subject, views), null);
}
