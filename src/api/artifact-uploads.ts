import type { Readable } from 'node:stream';
import type { ArtifactRules, Inspected } from '../artifact/inspected-bytes.js';
import { inspect, inspectedBytes } from '../artifact/inspected-bytes.js';
import { partBytes, partsOf } from '../core/artifact.js';
import type { AuditAuthor } from '../core/audit.js';
import { formatDuration } from '../core/duration.js';
import { ELF_HEAD_BYTES } from '../core/elf.js';
import { invalid, PunctualError } from '../core/errors.js';
import { ArtifactView, SignedQuery } from '../core/schemas/artifact.js';
import { IdPath } from '../core/schemas/query.js';
import { verifyUpload } from '../core/tokens.js';
import { type ArtifactRow, findArtifact, forgetBytes, makeReady } from '../store/artifacts.js';
import { viewOfArtifact } from './artifact-view.js';
import { mustFind, noteArtifact } from './artifacts.js';
import type { NodeContext } from './context.js';
import { anyBytes, type Call, type Route, route } from './route.js';
import type { Shard } from './shard.js';

/**
 * The bytes of artifacts on their way in. They go through any node into the store, and are hashed, counted and looked at on their way;
 * only when all of that fits does the artifact become ready. Every other end leaves nothing in the store.
 */
export const artifactUploadRoutes: readonly Route[] = [
  route({
    id: 'uploadArtifact',
    audit: 'artifact.upload',
    method: 'PUT',
    path: '/v1/artifacts/:id/upload',
    tag: 'artifacts',
    summary:
      'Upload the bytes of an announced artifact, or one part of them. The address is signed and needs no key; any node takes it.',
    scope: 'public',
    params: IdPath,
    query: SignedQuery,
    body: anyBytes,
    answers: { 200: ArtifactView },
    run: async ({ node, params: { id }, query: { token, part }, body, call }) => {
      const { shard, row } = await mustBeAnnounced(node, id, token);
      if (partsOf(row.size) === null) {
        if (part !== undefined)
          throw invalid([{ pointer: '/part', detail: 'this upload goes in one piece' }]);
        return viewOfArtifact(await receiveWhole(node, shard, row, body, call));
      }
      await receivePart(node, row, part, body, call);
      return viewOfArtifact(row);
    },
  }),
  route({
    id: 'completeArtifact',
    audit: 'artifact.upload',
    method: 'POST',
    path: '/v1/artifacts/:id/complete',
    tag: 'artifacts',
    summary:
      'End an upload in parts, or one that went straight to the store: the bytes are put together and checked.',
    scope: 'submit',
    params: IdPath,
    answers: { 200: ArtifactView },
    idempotent: 'an upload that has ended is answered with its artifact',
    repeatable: true,
    run: async ({ node, caller, params: { id }, call }) => {
      const row = await mustFind(node, caller, id);
      if (row.state === 'ready') return viewOfArtifact(row);
      const shard = node.shardOf(caller.tenant);
      const work = () => complete(node, shard, row, call);
      return viewOfArtifact(await node.transfers.once(id, row.sha256, work));
    },
  }),
];

/** The artifact that an address is for; throws if the address or its time is wrong, or the bytes are there. */
async function mustBeAnnounced(
  node: NodeContext,
  id: string,
  token: string,
): Promise<{ readonly shard: Shard; readonly row: ArtifactRow }> {
  const [{ clock }] = node.shards;
  const claims = verifyUpload(node.secret, token, clock.now());
  if (claims?.artifact !== id)
    throw new PunctualError('FORBIDDEN', 'The address of the upload was not signed by this cluster.');
  const shard = node.shardOf(claims.tenant);
  const row = await findArtifact(shard.pool, claims.tenant, id);
  if (row?.state === 'ready')
    throw new PunctualError('UPLOAD_DONE', `Artifact ${id} has its bytes already; nothing was stored.`);
  const isAsAnnounced = row?.sha256 === claims.sha256 && row.size === claims.size;
  if (!row || !isAsAnnounced || claims.until <= shard.clock.now()) {
    const why = row && !isAsAnnounced ? 'it was announced again with other bytes' : 'its time is over';
    throw new PunctualError('UPLOAD_EXPIRED', `Artifact ${id} cannot be uploaded here any more: ${why}.`);
  }
  return { shard, row };
}

async function receiveWhole(
  node: NodeContext,
  shard: Shard,
  row: ArtifactRow,
  pieces: Readable,
  call: Call,
): Promise<ArtifactRow> {
  const { id, tenant } = row;
  let found: Inspected | null = null;
  await received(node, { tenant, what: id }, pieces, call, (arriving) => {
    const looked = inspectedBytes(arriving, row.size, rulesFor(node, row), (inspected) => {
      found = inspected;
    });
    return node.artifacts.put(row, looked);
  });
  // Bytes that fit their hash were at least one, and so were looked at.
  return finish(node, shard, row, found!, call.author);
}

async function receivePart(
  node: NodeContext,
  row: ArtifactRow,
  number: number | undefined,
  pieces: Readable,
  call: Call,
): Promise<void> {
  const { id, tenant } = row;
  const { count } = partsOf(row.size)!;
  if (number === undefined || number > count)
    throw invalid([{ pointer: '/part', detail: `must be the number of a part, from 1 to ${count}` }]);
  const part = { number, size: partBytes(row.size, number) };
  await received(node, { tenant, what: `${id} ${number}` }, pieces, call, (arriving) => {
    const looked =
      number === 1 ? inspectedBytes(arriving, row.size, rulesFor(node, row), () => undefined) : arriving;
    return node.artifacts.putPart(id, part, looked);
  });
}

/** Receives bytes while their client sends them; gives up when it stalls or leaves, and when the node stops. */
export async function received(
  node: NodeContext,
  { tenant, what }: { readonly tenant: string; readonly what: string },
  pieces: Readable,
  call: Pick<Call, 'wait'>,
  store: (arriving: AsyncIterable<Buffer>) => Promise<void>,
): Promise<void> {
  const end = node.transfers.receive(tenant, what);
  try {
    await call.wait('bytes', (gone) => store(arrivingBytes(pieces, node.config.uploadStall, gone)));
  } finally {
    end();
  }
}

/**
 * Bytes as they arrive. `bodyLimit` and time limits of the server do not hold for streams, so those who stall are given up here. What
 * is not wanted any more is read and dropped: a client sees the answer only when it has sent its bytes.
 */
async function* arrivingBytes(pieces: Readable, stallMs: number, gone: AbortSignal): AsyncGenerator<Buffer> {
  const iterator = pieces.iterator({ destroyOnReturn: false });
  try {
    for (;;) {
      const next = await untilBroken(iterator.next(), stallMs, gone);
      if (next.done) return;
      yield next.value;
    }
  } finally {
    // Not waited for: of a client that stalls, the iterator still waits for bytes.
    void iterator.return?.().then(() => pieces.resume());
  }
}

async function untilBroken<T>(arrival: Promise<T>, stallMs: number, gone: AbortSignal): Promise<T> {
  let end: () => void = () => undefined;
  const broken = new Promise<never>((_, reject) => {
    const leave = () => reject(new Error('the client left, or the node stops'));
    const stall = () => {
      const detail = `The upload sent nothing for ${formatDuration(stallMs)}; nothing was stored.`;
      reject(new PunctualError('UPLOAD_STALLED', detail));
    };
    const timer = setTimeout(stall, stallMs);
    end = () => {
      clearTimeout(timer);
      gone.removeEventListener('abort', leave);
    };
    gone.addEventListener('abort', leave, { once: true });
    if (gone.aborted) leave();
  });
  // The bytes that nobody waits for any more may fail when the connection ends.
  arrival.catch(() => undefined);
  return Promise.race([arrival, broken]).finally(() => end());
}

/** Puts the parts of an upload together. */
async function complete(node: NodeContext, shard: Shard, row: ArtifactRow, call: Call): Promise<ArtifactRow> {
  const { artifacts } = node;
  const { id, tenant, sha256, size } = row;
  const parts = partsOf(size);
  if (parts) {
    const arrived = new Map((await artifacts.parts(id)).map((part) => [part.number, part.size]));
    const missing = Array.from({ length: parts.count }, (_, index) => index + 1).filter(
      (number) => arrived.get(number) !== partBytes(size, number),
    );
    if (missing.length > 0) {
      const detail = `${missing.length} of ${parts.count} parts have not arrived: ${missing.slice(0, 10).join(', ')}${missing.length > 10 ? ', …' : ''}.`;
      throw new PunctualError('UPLOAD_INCOMPLETE', detail);
    }
  }
  const end = node.transfers.begin(tenant);
  try {
    await artifacts.complete(id, row);
    const found = inspect(await headOf(node, row), size, rulesFor(node, row));
    return await finish(node, shard, row, found, call.author);
  } catch (error) {
    // Another node may have ended it meanwhile.
    const now = await findArtifact(shard.pool, tenant, id).catch(() => null);
    if (now?.state === 'ready' && now.sha256 === sha256) return now;
    // What cannot be run is of no use to this artifact; another one may have the same bytes.
    if (error instanceof PunctualError && error.code === 'ARTIFACT_NOT_RUNNABLE')
      await forgetBytes(shard.pool, sha256, (signal) => artifacts.remove(sha256, signal));
    throw error;
  } finally {
    end();
  }
}

async function headOf({ artifacts }: NodeContext, { sha256, size }: ArtifactRow): Promise<Buffer> {
  const head = await artifacts.open(sha256, { start: 0, end: Math.min(size, ELF_HEAD_BYTES) });
  if (head === null) throw notThere(sha256);
  const pieces: Buffer[] = [];
  for await (const piece of head as AsyncIterable<Buffer>) pieces.push(piece);
  return Buffer.concat(pieces);
}

function rulesFor({ config: { allowScripts } }: NodeContext, { runnable }: ArtifactRow): ArtifactRules {
  return { runnable, scripts: allowScripts };
}

/** Makes the artifact ready and lets the jobs go on that wait for it. */
async function finish(
  { artifacts }: NodeContext,
  shard: Shard,
  row: ArtifactRow,
  found: Inspected,
  author: AuditAuthor,
): Promise<ArtifactRow> {
  const { id, tenant, sha256 } = row;
  // Who uses a signed address is not known by a key.
  const by = author.keyName === '' ? { ...author, keyName: row.created_by } : author;
  const ready = await makeReady(
    shard.pool,
    row,
    found,
    shard.clock.now(),
    async (signal) => {
      if ((await artifacts.size(sha256, signal)) === null) throw notThere(sha256);
    },
    (db, after) => noteArtifact(db, shard, by, 'artifact.upload', row, after),
  );
  if (ready) {
    shard.currentLeader()?.noteEntry();
    await shard.tellArrived(id);
    return ready;
  }
  // Another upload of the same bytes was faster, or the artifact is not what it was.
  const now = await findArtifact(shard.pool, tenant, id);
  if (now?.state === 'ready' && now.sha256 === sha256) return now;
  await forgetBytes(shard.pool, sha256, (signal) => artifacts.remove(sha256, signal));
  throw new PunctualError(
    'UPLOAD_EXPIRED',
    `Artifact ${id} was removed or announced anew meanwhile; nothing was stored.`,
  );
}

function notThere(sha256: string): PunctualError {
  const detail = `The bytes ${sha256} were removed from the store at this moment; upload them again.`;
  return new PunctualError('ARTIFACT_STORE_UNAVAILABLE', detail, { retryAfter: 1 });
}
