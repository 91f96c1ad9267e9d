import { PunctualError } from '../core/errors.js';
import type { Target } from '../core/job.js';
import { IdPath } from '../core/schemas/query.js';
import { ArtifactAnswer, ArtifactRequest } from '../core/schemas/worker.js';
import { signDownload } from '../core/tokens.js';
import type * as wire from '../core/wire.js';
import { findReferred } from '../store/artifact-names.js';
import { readTarget } from '../store/secrets.js';
import { noArtifact } from './artifact-view.js';
import { addressOf } from './artifacts.js';
import { mustBeItsToken } from './attempt-token.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { forbidden } from './restrictions.js';
import { type Call, json, type Route, route } from './route.js';
import type { Shard } from './shard.js';

/** How long the address of a download can be used. */
const DOWNLOAD_MS = 15 * 60_000;
const MAX_BYTES = 64 * 1024;

/** What a worker is given to run: the one way to an artifact for a key that may only work. */
export const attemptArtifactRoutes: readonly Route[] = [
  route({
    id: 'resolveArtifact',
    method: 'POST',
    path: '/v1/workers/:id/artifact',
    tag: 'workers',
    summary:
      'The artifact that an attempt runs, with an address from which its bytes can be read without a key. The worker must hold ' +
      'the attempt and have its token.',
    scope: 'work',
    params: IdPath,
    body: json(ArtifactRequest, { maxBytes: MAX_BYTES }),
    answers: { 200: ArtifactAnswer },
    idempotent: 'it only reads',
    repeatable: true,
    run: ({ node, caller, params: { id }, body, call }) =>
      resolveArtifact(node, caller, { shard: call.shard, workerId: id }, body, call),
  }),
];

/** The artifact of an attempt, under the rules of its secrets: the worker holds the attempt, and the token is the attempt's own. */
export async function resolveArtifact(
  node: NodeContext,
  caller: Caller,
  { shard: shardId, workerId }: wire.SessionKey,
  request: wire.ArtifactRequest,
  call: Pick<Call, 'origin'>,
): Promise<wire.ArtifactAnswer> {
  const shard = node.shard(shardId);
  const { workers } = await shard.leader();
  const { tenant } = workers.heldAttempt(caller, workerId, request);
  mustBeItsToken(node, shard, tenant, request);
  const named = await artifactOf(shard, tenant, request);
  const row = await findReferred(shard.hot, tenant, named);
  if (!row) throw noArtifact(named);
  const { id, sha256, size, kind, machine, state } = row;
  if (state !== 'ready' || kind === null)
    throw new PunctualError('ARTIFACT_PENDING', `Artifact ${named} is not uploaded yet.`);
  const now = shard.clock.now();
  const until = now + DOWNLOAD_MS;
  const straight = await node.artifacts.directDownload(sha256, DOWNLOAD_MS);
  const token = straight ? '' : signDownload(node.secret, { tenant, artifact: id }, until, now);
  return {
    ...{ id, sha256, size, kind, machine },
    url: straight?.url ?? addressOf(node, call, `/v1/artifacts/${id}/download?token=${token}`),
    headers: straight?.headers ?? {},
    expiresAt: new Date(until).toISOString(),
  };
}

async function artifactOf(
  shard: Shard,
  tenant: string,
  { jobId, fence }: wire.ArtifactRequest,
): Promise<string> {
  const text = await readTarget(shard.hot, tenant, jobId);
  if (text === undefined)
    throw new PunctualError('STALE_FENCE', `Fence ${fence} of job ${jobId} does not count any more.`);
  const target = text === null ? null : (JSON.parse(text) as Target);
  if (target?.type !== 'exec' || target.artifact === undefined)
    throw forbidden(`The target of job ${jobId} names no artifact.`);
  return target.artifact;
}
