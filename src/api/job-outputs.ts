import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { type Inspected, inspectedBytes } from '../artifact/inspected-bytes.js';
import { invalid, PunctualError } from '../core/errors.js';
import { overQuota } from '../core/quotas.js';
import { ArtifactPage, ArtifactView, OutputPath, OutputQuery } from '../core/schemas/artifact.js';
import { IdPageQuery, IdPath } from '../core/schemas/query.js';
import { LAST_UUID, uuidv7 } from '../core/uuid.js';
import { type ArtifactRow, findArtifact, forgetBytes, listOutputs } from '../store/artifacts.js';
import { lookAtOutputs, type OutputsLook, storeOutput } from '../store/job-outputs.js';
import { received } from './artifact-uploads.js';
import { viewOfArtifact } from './artifact-view.js';
import { mustOwn, mustReachAttempt, stale } from './attempts.js';
import type { AttemptCredential, Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { mustRead } from './jobs.js';
import { writePage } from './page-text.js';
import { forbidden } from './restrictions.js';
import { Answer, anyBytes, type Call, type Route, route } from './route.js';
import type { Shard } from './shard.js';

/** Outputs of a list that one statement reads. */
const PORTION = 200;
/** Things that one job may leave. */
const MOST_OUTPUTS = 100;

/** What jobs leave behind, as artifacts that go when the history of the job goes. */
export const jobOutputRoutes: readonly Route[] = [
  route({
    id: 'leaveOutput',
    method: 'PUT',
    path: '/v1/jobs/:id/outputs/:name',
    tag: 'attempts',
    summary:
      'Leave a file with the job of a running attempt. The same name again takes the place of what was left before. ' +
      'Needs `content-length`; with a key instead of the token also `fence`.',
    scope: 'attempt',
    params: OutputPath,
    query: OutputQuery,
    body: anyBytes,
    answers: { 201: ArtifactView },
    run: async ({ node, caller, params: { id, name }, query, body, call }) => {
      const fence = 'jobId' in caller ? caller.fence : query.fence;
      if (fence === undefined) throw invalid([{ pointer: '/fence', detail: 'is needed without a token' }]);
      const left = await leaveOutput(node, caller, { job: id, fence, output: name }, body, call);
      return new Answer(201, viewOfArtifact(left));
    },
  }),
  route({
    id: 'listOutputs',
    method: 'GET',
    path: '/v1/jobs/:id/outputs',
    tag: 'jobs',
    summary: 'What a job has left behind, the newest first.',
    scope: 'read',
    params: IdPath,
    query: IdPageQuery,
    answers: { 200: ArtifactPage },
    run: async ({ node, caller, params: { id }, query: { limit, after = LAST_UUID } }) => {
      const { tenant } = caller;
      const shard = node.shardOf(tenant);
      await mustRead(shard, caller, id);
      return writePage<ArtifactRow>(limit, {
        portion: PORTION,
        read: (last, size) =>
          shard.reads.read(tenant, (db) => listOutputs(db, tenant, last?.id ?? after, id, size)),
        write: (row) => JSON.stringify(viewOfArtifact(row)),
        cursor: (row) => row.id,
      });
    },
  }),
];

/** The attempt that leaves something. */
interface Leaving {
  readonly job: string;
  readonly fence: number;
  readonly output: string;
}

/** Stores what a running attempt leaves. Everything is checked before its bytes are read, and again when they are there. */
export async function leaveOutput(
  node: NodeContext,
  by: Caller | AttemptCredential,
  { job, fence, output }: Leaving,
  pieces: Readable,
  call: Pick<Call, 'wait' | 'contentLength'>,
): Promise<ArtifactRow> {
  if ('jobId' in by && by.isReceiver) throw forbidden('The receiver of a call leaves no files.');
  mustOwn(by, job, fence);
  const { tenant } = by;
  const { artifacts } = node;
  const shard = node.shardOf(tenant);
  await mustReachAttempt(shard, by, job);
  const size = call.contentLength;
  if (size === null)
    throw new PunctualError('LENGTH_REQUIRED', 'Say with content-length how many bytes come.');
  const quota = (await shard.quotas.of(tenant))?.artifactBytes ?? null;
  const leaver = { tenant, job, fence, output };
  const mayStay = (look: OutputsLook) => mustHaveRoom(node, leaver, size, quota, look);
  mayStay(await lookAtOutputs(shard.pool, leaver, quota !== null));
  const id = uuidv7(shard.clock.now());
  const hash = createHash('sha256');
  let found: Inspected = { kind: 'file', machine: null };
  try {
    await received(node, { tenant, what: `${job} ${output}` }, pieces, call, async (arriving) => {
      const rules = { runnable: false, scripts: true };
      const looked = inspectedBytes(arriving, size, rules, (inspected) => {
        found = inspected;
      });
      await artifacts.putPart(id, { number: 1, size }, hashedBytes(looked, hash));
    });
    const sha256 = hash.digest('hex');
    await artifacts.complete(id, { sha256, size });
    await keepOutput(node, shard, { ...leaver, id, sha256, size, ...found }, quota !== null, mayStay);
    return (await findArtifact(shard.pool, tenant, id))!;
  } finally {
    await artifacts.abandon(id).catch(() => undefined);
  }
}

type Kept = Leaving &
  Inspected & {
    readonly tenant: string;
    readonly id: string;
    readonly sha256: string;
    readonly size: number;
  };

async function keepOutput(
  { artifacts }: NodeContext,
  shard: Shard,
  kept: Kept,
  sumsTenant: boolean,
  mayStay: (look: OutputsLook) => void,
): Promise<void> {
  const { sha256 } = kept;
  const remove = (hash: string) => forgetBytes(shard.pool, hash, (signal) => artifacts.remove(hash, signal));
  const areThere = async (signal: AbortSignal) => {
    if ((await artifacts.size(sha256, signal)) === null)
      throw new PunctualError(
        'ARTIFACT_STORE_UNAVAILABLE',
        'The bytes were removed at this moment; send them again.',
        {
          retryAfter: 1,
        },
      );
  };
  const made = { ...kept, createdBy: `job ${kept.job}`, now: shard.clock.now() };
  let replaced: string | null;
  try {
    replaced = await storeOutput(shard.pool, made, sumsTenant, mayStay, areThere);
  } catch (error) {
    await remove(sha256).catch(() => undefined);
    throw error;
  }
  if (replaced !== null) await remove(replaced);
}

function mustHaveRoom(
  { config: { maxOutputBytes } }: NodeContext,
  { tenant, job, fence }: Leaving & { readonly tenant: string },
  size: number,
  quota: number | null,
  { running, count, bytes, tenantBytes }: OutputsLook,
): void {
  if (!running) throw stale(job, fence);
  if (count >= MOST_OUTPUTS)
    throw new PunctualError('OUTPUT_TOO_LARGE', `A job may leave ${MOST_OUTPUTS} files; this one has.`);
  if (bytes + size > maxOutputBytes)
    throw new PunctualError(
      'OUTPUT_TOO_LARGE',
      `A job may leave ${maxOutputBytes} bytes; it has left ${bytes}, and ${size} more do not fit.`,
    );
  if (quota !== null && tenantBytes + size > quota)
    throw overQuota(
      'artifactBytes',
      quota,
      `Tenant ${tenant} may have ${quota} bytes of artifacts, and has ${tenantBytes}.`,
    );
}

async function* hashedBytes(
  pieces: AsyncIterable<Buffer>,
  hash: ReturnType<typeof createHash>,
): AsyncGenerator<Buffer> {
  for await (const piece of pieces) {
    hash.update(piece);
    yield piece;
  }
}
