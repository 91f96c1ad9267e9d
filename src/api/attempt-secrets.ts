import type { AuditAuthor } from '../core/audit.js';
import { PunctualError } from '../core/errors.js';
import type { ExecTarget, HttpTarget, Target } from '../core/job.js';
import { IdPath } from '../core/schemas/query.js';
import { SecretsAnswer, SecretsRequest } from '../core/schemas/worker.js';
import { originOf, secretNamesIn } from '../core/secret.js';
import type * as wire from '../core/wire.js';
import { readSealedSecrets, readTarget } from '../store/secrets.js';
import { mustBeItsToken } from './attempt-token.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { forbidden } from './restrictions.js';
import { json, type Route, route } from './route.js';
import { mustHaveKey, openSealed } from './secret-access.js';
import { noSecret } from './secrets.js';
import type { Shard } from './shard.js';
import { signingValues } from './signing-secrets.js';

/** The most bytes of a request: sixteen names and a token. */
const MAX_BYTES = 64 * 1024;

/** The one route that gives values back: to the worker that is about to make a call with them. */
export const attemptSecretRoutes: readonly Route[] = [
  route({
    id: 'resolveSecrets',
    method: 'POST',
    path: '/v1/workers/:id/secrets',
    tag: 'workers',
    summary:
      'The secrets that the target of an attempt refers to, and those that sign its call. The worker must hold the attempt and have its token.',
    scope: 'work',
    params: IdPath,
    body: json(SecretsRequest, { maxBytes: MAX_BYTES }),
    answers: { 200: SecretsAnswer },
    idempotent: 'it only reads, and what it answers is kept nowhere',
    repeatable: true,
    run: ({ node, caller, params: { id }, body, call: { shard, author } }) =>
      resolveSecrets(node, caller, { shard, workerId: id }, body, author),
  }),
];

/**
 * The secrets for one call of an attempt. All of this must hold: the caller may speak for the worker, the worker holds the attempt
 * at this moment, the token is the attempt's own, each name stands in the target of the job, and each secret may go to the origin of
 * the target. Only a worker in this process has no token.
 */
export async function resolveSecrets(
  node: NodeContext,
  caller: Caller,
  { shard: shardId, workerId }: wire.SessionKey,
  request: wire.SecretsRequest,
  author: AuditAuthor = authorOf(caller),
): Promise<wire.SecretsAnswer> {
  const shard = node.shard(shardId);
  const { workers } = await shard.leader();
  const { tenant } = workers.heldAttempt(caller, workerId, request);
  mustBeItsToken(node, shard, tenant, request);
  const target = await targetOf(shard, tenant, request);
  const [values, signing] = await Promise.all([
    request.names.length === 0 ? {} : valuesOf(node, shard, tenant, target, request.names),
    target.type === 'http' ? signingValues(node, shard, tenant, author) : [],
  ]);
  return { values, signing };
}

async function targetOf(
  shard: Shard,
  tenant: string,
  { jobId, fence }: wire.SecretsRequest,
): Promise<HttpTarget | ExecTarget> {
  const text = await readTarget(shard.hot, tenant, jobId);
  if (text === undefined)
    throw new PunctualError('STALE_FENCE', `Fence ${fence} of job ${jobId} does not count any more.`);
  const target = text === null ? null : (JSON.parse(text) as Target);
  if (target === null || target.type === 'handler')
    throw forbidden(`The target of job ${jobId} is a handler, and needs no secrets.`);
  return target;
}

async function valuesOf(
  node: NodeContext,
  shard: Shard,
  tenant: string,
  target: HttpTarget | ExecTarget,
  names: readonly string[],
): Promise<Readonly<Record<string, string>>> {
  const box = mustHaveKey(node);
  const referred = secretNamesIn(target);
  const other = names.find((name) => !referred.has(name));
  if (other !== undefined) throw forbidden(`The target of the job does not refer to the secret ${other}.`);
  const origin = originOf(target);
  const rows = await readSealedSecrets(shard.hot, tenant, names);
  const found = new Map(rows.map((row) => [row.name, row]));
  const values = names.map((name): [string, string] => {
    const row = found.get(name);
    if (!row) throw noSecret(name);
    if (!row.origins.includes(origin))
      throw new PunctualError('SECRET_ORIGIN', `The secret ${name} may not go to ${origin}.`);
    return [name, openSealed(box, row, { kind: 'secret', tenant, name, version: row.version })];
  });
  // Not by assignment: a secret may be called __proto__.
  return Object.fromEntries(values);
}

/** A worker in the process of a node comes from nowhere. */
function authorOf({ actor, key }: Caller): AuditAuthor {
  return { keyId: key?.id ?? null, keyName: actor, address: null, requestId: null };
}
