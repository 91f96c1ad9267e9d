import { randomBytes } from 'node:crypto';
import { type AuditAuthor, auditEntry } from '../core/audit.js';
import { parseDuration } from '../core/duration.js';
import { invalid, PunctualError } from '../core/errors.js';
import { IdPath, PageQuery } from '../core/schemas/query.js';
import { NewSigningSecret, SigningSecretInput, SigningSecretPage } from '../core/schemas/secret.js';
import type { SigningSecretView as View } from '../core/secret.js';
import type { SecretBox } from '../core/secret-box.js';
import { uuidv7 } from '../core/uuid.js';
import { addEntry } from '../store/audit.js';
import {
  addSigningSecret,
  deleteSigningSecret,
  firstSigningSecret,
  listSigningSecrets,
  type NewSigningSecretRow,
  readSealedSigningSecrets,
  type SealedSigningSecret,
  type SigningSecretRow,
} from '../store/signing-secrets.js';
import type { NodeContext } from './context.js';
import { json, type Route, route } from './route.js';
import { mustHaveKey, mustReachSecrets, openSealed, reachesSecrets } from './secret-access.js';
import type { Shard } from './shard.js';

/** How long the other signing secrets stay valid beside a new one, unless said otherwise. */
const KEPT_MS = 86_400_000;
/** Longer than workers keep signing secrets, so that no call is signed with the others alone after they have ended. */
const LEAST_KEPT_MS = 60_000;
const PREFIX = 'whsec_';
const SECRET_BYTES = 32;

/** The secrets with which calls are signed as Standard Webhooks. Every node makes and ends them itself. */
export const signingSecretRoutes: readonly Route[] = [
  route({
    id: 'createSigningSecret',
    audit: 'signing-secret.create',
    method: 'POST',
    path: '/v1/signing-secrets',
    tag: 'secrets',
    summary:
      'Make the next signing secret, which is in this answer and nowhere else. Calls are signed with it and, for a while, with the others.',
    scope: 'admin',
    body: json(SigningSecretInput, { optional: true }),
    answers: { 201: NewSigningSecret },
    idempotent:
      'the answer is never stored, because it has the secret; delete the one whose answer was lost, or let the next one end it',
    run: async ({ node, caller, body: { keepOthersFor }, call }) => {
      mustReachSecrets(caller);
      const box = mustHaveKey(node);
      const keptMs = keepOthersFor === undefined ? KEPT_MS : parseDuration(keepOthersFor)!;
      if (keptMs < LEAST_KEPT_MS)
        throw invalid([{ pointer: '/keepOthersFor', detail: 'must be a duration of at least 1m' }]);
      const { tenant } = caller;
      const shard = node.shardOf(tenant);
      const { secret, row } = makeSecret(box, shard, tenant);
      const othersUntil = row.now + keptMs;
      const added = await addSigningSecret(shard.pool, row, othersUntil, (db, after) => {
        const views = { after: { ...viewOf(after), othersExpireAt: new Date(othersUntil).toISOString() } };
        return addEntry(db, entryOf(call.author, row.now, 'signing-secret.create', after, views), null);
      });
      shard.currentLeader()?.noteEntry();
      return { ...viewOf(added), secret };
    },
  }),
  route({
    id: 'listSigningSecrets',
    method: 'GET',
    path: '/v1/signing-secrets',
    tag: 'secrets',
    summary: 'List the signing secrets that are valid, newest first; they themselves are not shown.',
    scope: 'read',
    query: PageQuery,
    answers: { 200: SigningSecretPage },
    run: async ({ node, caller, query: { limit, after } }) => {
      const { tenant } = caller;
      const { reads, clock } = node.shardOf(tenant);
      if (!reachesSecrets(caller)) return { data: [], next: null };
      const all = await reads.read(tenant, (db) => listSigningSecrets(db, tenant, clock.now()));
      const rows = after === undefined ? all : all.filter(({ id }) => id < after);
      const data = rows.slice(0, limit).map(viewOf);
      return { data, next: rows.length > limit ? data.at(-1)!.id : null };
    },
  }),
  route({
    id: 'deleteSigningSecret',
    audit: 'signing-secret.delete',
    method: 'DELETE',
    path: '/v1/signing-secrets/:id',
    tag: 'secrets',
    summary: 'End a signing secret at once. Workers that keep it sign with it for half a minute more.',
    scope: 'admin',
    params: IdPath,
    answers: { 204: 'The signing secret is gone.' },
    run: async ({ node, caller, params: { id }, call }) => {
      const { tenant } = caller;
      const shard = node.shardOf(tenant);
      const now = shard.clock.now();
      const gone =
        reachesSecrets(caller) &&
        (await deleteSigningSecret(shard.pool, { tenant, id, now }, (db, before) =>
          addEntry(
            db,
            entryOf(call.author, now, 'signing-secret.delete', before, { before: viewOf(before) }),
            null,
          ),
        ));
      if (!gone) throw new PunctualError('SIGNING_SECRET_NOT_FOUND', `There is no signing secret ${id}.`);
      shard.currentLeader()?.noteEntry();
    },
  }),
];

/**
 * The values with which calls of a tenant are signed, the newest first. A tenant that has none gets its first one here. Without a
 * master key calls are not signed; but a node that only lacks the key of those that exist says so, because receivers would refuse
 * calls without signatures.
 */
export async function signingValues(
  { secretBox }: Pick<NodeContext, 'secretBox'>,
  shard: Shard,
  tenant: string,
  author: AuditAuthor,
): Promise<string[]> {
  const rows = await readSealedSigningSecrets(shard.hot, tenant, shard.clock.now());
  if (rows.length === 0 && !secretBox) return [];
  const box = mustHaveKey({ secretBox });
  const valid = rows.length > 0 ? rows : await makeFirst(box, shard, tenant, author);
  return valid.map((row) => openSealed(box, row, subjectOf(row)));
}

async function makeFirst(
  box: SecretBox,
  shard: Shard,
  tenant: string,
  author: AuditAuthor,
): Promise<SealedSigningSecret[]> {
  const { row } = makeSecret(box, shard, tenant);
  const valid = await firstSigningSecret(shard.pool, row, (db, after) =>
    addEntry(
      db,
      entryOf(author, row.now, 'signing-secret.create', after, { after: { ...viewOf(after), first: true } }),
      null,
    ),
  );
  shard.currentLeader()?.noteEntry();
  return valid;
}

function makeSecret(
  box: SecretBox,
  { clock }: Shard,
  tenant: string,
): { readonly secret: string; readonly row: NewSigningSecretRow } {
  const now = clock.now();
  const id = uuidv7(now);
  const secret = PREFIX + randomBytes(SECRET_BYTES).toString('base64');
  return { secret, row: { tenant, id, now, ...box.seal(secret, subjectOf({ tenant, id })) } };
}

/** A signing secret never changes, so that it has one version. */
function subjectOf({ tenant, id }: { readonly tenant: string; readonly id: string }) {
  return { kind: 'signing-secret', tenant, name: id, version: 1 } as const;
}

function entryOf(
  author: AuditAuthor,
  now: number,
  action: 'signing-secret.create' | 'signing-secret.delete',
  { tenant, id }: SigningSecretRow,
  views: { readonly before?: object; readonly after?: object },
) {
  return auditEntry(author, now, action, { kind: 'signing-secret', name: id, tenant }, views);
}

function viewOf({ id, created_at, expires_at }: SigningSecretRow): View {
  return {
    id,
    createdAt: new Date(created_at).toISOString(),
    expiresAt: expires_at === null ? null : new Date(expires_at).toISOString(),
  };
}
