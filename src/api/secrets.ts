import { type AuditAuthor, auditEntry } from '../core/audit.js';
import { PunctualError } from '../core/errors.js';
import { NamePath, PageQuery } from '../core/schemas/query.js';
import { SecretInput, SecretPage, SecretView } from '../core/schemas/secret.js';
import { readOrigin, type SecretView as View } from '../core/secret.js';
import { addEntry } from '../store/audit.js';
import type { Queryable } from '../store/database.js';
import {
  deleteSecret,
  listSecrets,
  type SecretChanged,
  type SecretRow,
  writeSecret,
} from '../store/secrets.js';
import { writePage } from './page-text.js';
import { Answer, json, type Route, route } from './route.js';
import { mustHaveKey, mustReachSecrets, reachesSecrets } from './secret-access.js';
import type { Shard } from './shard.js';

/** Secrets of a list that one statement reads. */
const PORTION = 200;
/** A value of the largest size, each character escaped, and all origins. */
const MAX_BYTES = 64 * 1024;

/**
 * Secrets of a tenant, for targets. They are written and never read back: only the worker that makes a call is given the value
 * (see `attempt-secrets.ts`). Every node does this itself.
 */
export const secretRoutes: readonly Route[] = [
  route({
    id: 'putSecret',
    audit: ['secret.create', 'secret.change'],
    method: 'PUT',
    path: '/v1/secrets/:name',
    tag: 'secrets',
    summary:
      'Set a secret and the origins that it may go to. Its value is never shown again. Calls that begin later use the new value.',
    scope: 'admin',
    params: NamePath,
    body: json(SecretInput, { maxBytes: MAX_BYTES }),
    answers: { 201: SecretView, 200: SecretView },
    repeatable: true,
    run: async ({ node, caller, params: { name }, body: { value, origins }, call }) => {
      mustReachSecrets(caller);
      const box = mustHaveKey(node);
      const { tenant, actor } = caller;
      const shard = node.shardOf(tenant);
      const secret = {
        ...{ tenant, name, actor, now: shard.clock.now(), maxSecrets: node.config.maxSecrets },
        origins: [...new Set(origins.map((origin) => readOrigin(origin)!))],
        seal: (version: number) => box.seal(value, { kind: 'secret', tenant, name, version }),
      };
      const { before, after } = await writeSecret(shard.pool, secret, (db, changed) =>
        note(db, call.author, shard, changed),
      );
      shard.currentLeader()?.noteEntry();
      return new Answer(before ? 200 : 201, viewOf(after!));
    },
  }),
  route({
    id: 'listSecrets',
    method: 'GET',
    path: '/v1/secrets',
    tag: 'secrets',
    summary: 'List the secrets by name, without their values.',
    scope: 'read',
    query: PageQuery,
    answers: { 200: SecretPage },
    run: ({ node, caller, query: { limit, after = '' } }) => {
      const { tenant } = caller;
      const { reads } = node.shardOf(tenant);
      const isShown = reachesSecrets(caller);
      return writePage<SecretRow>(limit, {
        portion: PORTION,
        read: (last, size) => reads.read(tenant, (db) => listSecrets(db, tenant, last?.name ?? after, size)),
        isShown: () => isShown,
        write: (row) => JSON.stringify(viewOf(row)),
        cursor: (row) => row.name,
      });
    },
  }),
  route({
    id: 'deleteSecret',
    audit: 'secret.delete',
    method: 'DELETE',
    path: '/v1/secrets/:name',
    tag: 'secrets',
    summary: 'Delete a secret: calls that refer to it fail from now on.',
    scope: 'admin',
    params: NamePath,
    answers: { 204: 'The secret is gone.' },
    run: async ({ node, caller, params: { name }, call }) => {
      const { tenant } = caller;
      const shard = node.shardOf(tenant);
      const gone =
        reachesSecrets(caller) &&
        (await deleteSecret(shard.pool, { tenant, name }, (db, changed) =>
          note(db, call.author, shard, changed),
        ));
      if (!gone) throw noSecret(name);
      shard.currentLeader()?.noteEntry();
    },
  }),
];

/** The error for a secret that the tenant does not have. */
export function noSecret(name: string): PunctualError {
  return new PunctualError('SECRET_NOT_FOUND', `There is no secret ${name}.`);
}

/** The entry of the audit about a secret: nothing of its value, not even a hash, by which short ones could be found. */
async function note(
  db: Queryable,
  author: AuditAuthor,
  { clock }: Shard,
  { before, after }: SecretChanged,
): Promise<void> {
  const { tenant, name } = (after ?? before)!;
  const action = !after ? 'secret.delete' : before ? 'secret.change' : 'secret.create';
  const views = { before: before && auditView(before), after: after && auditView(after) };
  await addEntry(db, auditEntry(author, clock.now(), action, { kind: 'secret', name, tenant }, views), null);
}

function auditView({ origins, version }: SecretRow): object {
  return { origins, version };
}

function viewOf({ name, origins, version, ...row }: SecretRow): View {
  return {
    ...{ name, origins, version },
    ...{ createdAt: new Date(row.created_at).toISOString(), createdBy: row.created_by },
    ...{ changedAt: new Date(row.changed_at).toISOString(), changedBy: row.changed_by },
  };
}
