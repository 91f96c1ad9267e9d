import Type from 'typebox';
import { AUDIT_ACTIONS } from '../audit.js';
import { defaulted, nullable, page, strict } from './object.js';
import { Id, line, MomentOrAgo } from './text.js';

const Action = Type.Enum([...AUDIT_ACTIONS], { type: 'string' });

/** What an action changed about its subject. */
const View = Type.Unsafe<Record<string, unknown>>(Type.Object({}, { additionalProperties: true }));

/** Which entries of the audit, and in which form. */
export const AuditQuery = strict({
  since: Type.Optional(MomentOrAgo),
  until: Type.Optional(MomentOrAgo),
  key: Type.Optional(Id),
  action: Type.Optional(Action),
  kind: Type.Optional(line(32)),
  subject: Type.Optional(line(512)),
  order: Type.Optional(Type.Enum(['newest', 'chain'], { type: 'string' })),
  format: Type.Optional(Type.Enum(['json', 'ndjson'], { type: 'string' })),
  limit: defaulted(Type.Integer({ minimum: 1, maximum: 1_000, default: 100 })),
  after: Type.Optional(line(64)),
});

/** An entry of the audit. */
export const AuditView = Type.Object(
  {
    shard: Type.Integer(),
    sequence: nullable(
      Type.Integer({ description: 'The place in the chain; null for the first second or so.' }),
    ),
    previous: nullable(Type.String({ description: 'The hash of the entry before.' })),
    id: Type.String(),
    at: Type.String({ format: 'date-time' }),
    tenant: nullable(
      Type.String({ description: 'Whose the subject is; null for what belongs to the operator.' }),
    ),
    keyId: nullable(Type.String()),
    keyName: Type.String(),
    address: nullable(Type.String({ description: 'Where the request came from.' })),
    requestId: nullable(Type.String()),
    action: Action,
    kind: Type.String(),
    subject: Type.String({ description: 'The id or name of the subject.' }),
    outcome: Type.Enum(['done', 'failed', 'unknown'], { type: 'string' }),
    before: nullable(View),
    after: nullable(View),
    hash: nullable(
      Type.String({ description: 'SHA-256 of this entry without its hash; see docs/audit.md.' }),
    ),
  },
  { title: 'AuditEntry' },
);

/** Entries of the audit. */
export const AuditPage = page('AuditPage', AuditView);

/** Both ends of the chains of all shards. */
export const AuditChains = Type.Object(
  {
    chains: Type.Array(
      Type.Object({
        shard: Type.Integer(),
        sequence: Type.Integer({ description: 'The newest entry of the chain.' }),
        hash: Type.String(),
        removedSequence: Type.Integer({
          description: 'The last entry that retention has removed; 0 if none.',
        }),
        removedHash: Type.String(),
      }),
    ),
  },
  { title: 'AuditChains' },
);
