import { auditEntry } from '../core/audit.js';
import { RekeyAnswer, SecretKeysView } from '../core/schemas/secret.js';
import type { RekeyAnswer as Answer, SecretKeysView as View } from '../core/secret.js';
import type { SecretBox } from '../core/secret-box.js';
import { addEntry } from '../store/audit.js';
import {
  countByMasterKey,
  type RekeyPosition,
  rekeyPortion,
  SEALED_KINDS,
  type SealedKind,
  type SealedRow,
} from '../store/rekey-secrets.js';
import type { NodeContext } from './context.js';
import { type Call, type Route, route } from './route.js';
import { mustHaveKey } from './secret-access.js';
import type { Shard } from './shard.js';

/** How long one call encrypts values anew; whoever wants more calls again. */
const REKEY_MS = 1_000;

/** The master keys of the node that answers, and giving what is stored to the first of them. */
export const secretKeyRoutes: readonly Route[] = [
  route({
    id: 'getSecretKeys',
    method: 'GET',
    path: '/v1/secret-keys',
    tag: 'secrets',
    summary: 'Which master keys the node that answers has, by their ids, and which ones stored secrets need.',
    scope: 'operator',
    answers: { 200: SecretKeysView },
    run: ({ node }) => viewOf(node),
  }),
  route({
    id: 'rekeySecrets',
    audit: 'secret.rekey',
    method: 'POST',
    path: '/v1/secrets/rekey',
    tag: 'secrets',
    summary:
      'Encrypt what is under other master keys anew with the first one, for about a second. Call it until `done`; it may break off at any time.',
    scope: 'operator',
    answers: { 200: RekeyAnswer },
    idempotent: 'what is under the first key stays as it is, so it may be repeated',
    repeatable: true,
    run: ({ node, call }) => rekey(node, call),
  }),
];

async function viewOf({ secretBox, shards }: NodeContext): Promise<View> {
  const counts = new Map<string, number>();
  for (const { pool } of shards) {
    for (const [keyId, values] of await countByMasterKey(pool)) {
      counts.set(keyId, (counts.get(keyId) ?? 0) + values);
    }
  }
  const known = secretBox?.keyIds ?? [];
  return {
    current: secretBox?.keyId ?? null,
    known,
    stored: [...counts].map(([keyId, values]) => ({ keyId, isKnown: known.includes(keyId), values })),
  };
}

async function rekey(node: NodeContext, call: Call): Promise<Answer> {
  const box = mustHaveKey(node);
  const until = performance.now() + REKEY_MS;
  const sum = { rekeyed: 0, unreadable: 0, isCut: false };
  for (const shard of node.shards) {
    for (const oldKeyId of box.keyIds.slice(1)) {
      for (const kind of SEALED_KINDS) {
        for (let after: RekeyPosition | null = null; !sum.isCut; ) {
          const portion = await rekeyNext(box, shard, { kind, oldKeyId, after }, call);
          sum.rekeyed += portion.rekeyed;
          sum.unreadable += portion.unreadable;
          if (portion.next === null) break;
          after = portion.next;
          sum.isCut = performance.now() >= until;
        }
      }
    }
  }
  const view = await viewOf(node);
  const others = view.stored.filter(({ keyId }) => keyId !== box.keyId);
  const remaining = sumOf(others);
  const { rekeyed, unreadable } = sum;
  // Rows that somebody else was changing were passed over, and are found by the next call.
  const done = !sum.isCut && sumOf(others.filter(({ isKnown }) => isKnown)) <= unreadable;
  return { ...view, rekeyed, remaining, done, detail: detailOf(box, view, { remaining, unreadable, done }) };
}

function sumOf(keys: View['stored']): number {
  return keys.reduce((sum, { values }) => sum + values, 0);
}

/** Where to go on: the rows of one kind under one key. */
interface Place {
  readonly kind: SealedKind;
  readonly oldKeyId: string;
  readonly after: RekeyPosition | null;
}

function rekeyNext(box: SecretBox, shard: Shard, { kind, oldKeyId, after }: Place, call: Call) {
  const { pool, clock } = shard;
  const reseal = ({ tenant, name, version, keyId, sealed }: SealedRow) => {
    const subject = { kind, tenant, name, version };
    try {
      return box.seal(box.open({ keyId, sealed }, subject), subject);
    } catch {
      return null;
    }
  };
  return rekeyPortion(pool, kind, oldKeyId, after, reseal, async (db, values) => {
    const subject = { kind: 'secrets', name: kind, tenant: null } as const;
    const views = { before: { keyId: oldKeyId }, after: { keyId: box.keyId, values } };
    await addEntry(db, auditEntry(call.author, clock.now(), 'secret.rekey', subject, views), null);
    shard.currentLeader()?.noteEntry();
  });
}

function detailOf(
  { keyId, keyIds }: SecretBox,
  { stored }: View,
  { remaining, unreadable, done }: { remaining: number; unreadable: number; done: boolean },
): string {
  if (!done) return `${remaining} values are not under the master key ${keyId} yet; go on.`;
  const missing = stored.filter(({ isKnown }) => !isKnown).map((key) => key.keyId);
  if (missing.length > 0)
    return `Some values need master keys that this node does not have: ${missing.join(', ')}. Add them to PUNCTUAL_SECRET_KEY.`;
  if (unreadable > 0)
    return `${unreadable} values cannot be decrypted, because what is stored was changed; set them again.`;
  const all = `Everything is under the master key ${keyId}.`;
  if (keyIds.length === 1) return all;
  return `${all} As soon as it is the first one of every node, the others (${keyIds.slice(1).join(', ')}) can be removed from PUNCTUAL_SECRET_KEY.`;
}
