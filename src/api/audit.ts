import { setImmediate as nextIteration } from 'node:timers/promises';
import { type AuditAction, type AuditChainsView, auditLine } from '../core/audit.js';
import { AuditChains, AuditPage, AuditQuery } from '../core/schemas/audit.js';
import { LAST_UUID } from '../core/uuid.js';
import {
  type AuditFilter,
  type AuditRow,
  linkOf,
  listChain,
  listNewest,
  readChainEnds,
} from '../store/audit.js';
import type { Queryable } from '../store/database.js';
import type { Portion } from '../store/portion.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { momentOf, mustBeCursor, wrongCursor } from './id-range.js';
import { type PageText, writePage } from './page-text.js';
import { forbidden, limitsOf } from './restrictions.js';
import { type AnswerStream, type Route, route } from './route.js';
import type { Shard } from './shard.js';

/** Entries of a list that one statement reads. */
const PORTION = 200;
/** How much of an export is read at once. */
const EXPORTED_AT_ONCE = { rows: 500, bytes: 1024 * 1024 };

const NDJSON = 'application/x-ndjson';

/** Reading the audit. A tenant is shown its own entries; an operator those of all tenants, or of the one that it names. */
export const auditRoutes: readonly Route[] = [
  route({
    id: 'listAudit',
    method: 'GET',
    path: '/v1/audit',
    tag: 'audit',
    summary:
      'List entries of the audit, newest first, or in the order of the chain with `order=chain`. With `format=ndjson`, or `accept: application/x-ndjson`, all of them in the order of the chain as lines of JSON.',
    scope: 'admin',
    query: AuditQuery,
    answers: { 200: AuditPage },
    run: ({ node, caller, query: { format, order = 'newest', limit, after, ...query }, call }) => {
      const filter = filterOf(node, caller, query);
      const isLines = format === 'ndjson' || (format === undefined && call.accept.includes(NDJSON));
      if (isLines) return call.stream('results', (stream) => exportAll(node, caller, filter, stream), NDJSON);
      const shard = node.shardOf(caller.tenant);
      return order === 'chain'
        ? pageOfChain(shard, filter, after, limit)
        : pageOfNewest(shard, filter, after, limit);
    },
  }),
  route({
    id: 'getAuditChain',
    method: 'GET',
    path: '/v1/audit/chain',
    tag: 'audit',
    summary: 'Both ends of the chain of entries, for whoever verifies it.',
    scope: 'operator',
    answers: { 200: AuditChains },
    run: async ({ node }): Promise<AuditChainsView> => ({
      chains: await Promise.all(
        node.shards.map(async ({ id, pool }) => {
          const { anchor, head } = await readChainEnds(pool);
          return {
            ...{ shard: id, ...head },
            ...{ removedSequence: anchor.sequence, removedHash: anchor.hash },
          };
        }),
      ),
    }),
  }),
];

interface Query {
  readonly since?: string;
  readonly until?: string;
  readonly key?: string;
  readonly action?: AuditAction;
  readonly kind?: string;
  readonly subject?: string;
}

function filterOf(node: NodeContext, caller: Caller, { since, until, ...rest }: Query): AuditFilter {
  // An entry may be about a queue that the key does not reach.
  if (limitsOf(caller)) throw forbidden('The key is restricted: it does not read the audit.');
  const now = node.shardOf(caller.tenant).clock.now();
  return {
    ...rest,
    tenant: caller.allTenants ? null : caller.tenant,
    since: since === undefined ? undefined : momentOf(since, now),
    until: until === undefined ? undefined : momentOf(until, now),
  };
}

function pageOfNewest(
  shard: Shard,
  filter: AuditFilter,
  after: string | undefined,
  limit: number,
): Promise<PageText> {
  mustBeCursor(after);
  return writePage<AuditRow>(limit, {
    portion: PORTION,
    read: (last, size) =>
      readEntries(shard, filter, (db) => listNewest(db, filter, last?.id ?? after ?? LAST_UUID, size)),
    write: (row) => auditLine(shard.id, row, linkOf(row)),
    cursor: (row) => row.id,
  });
}

function pageOfChain(
  shard: Shard,
  filter: AuditFilter,
  after: string | undefined,
  limit: number,
): Promise<PageText> {
  if (after !== undefined && !/^\d{1,15}$/.test(after)) throw wrongCursor();
  return writePage<AuditRow>(limit, {
    portion: PORTION,
    read: (last, size) =>
      readEntries(shard, filter, (db) => listChain(db, filter, last?.sequence ?? Number(after ?? 0), size)),
    write: (row) => auditLine(shard.id, row, linkOf(row)),
    cursor: (row) => String(row.sequence),
  });
}

/** Writes the chain of each shard, portion by portion, no faster than the client reads. */
async function exportAll(
  node: NodeContext,
  caller: Caller,
  filter: AuditFilter,
  stream: AnswerStream,
): Promise<void> {
  const shards = filter.tenant === null ? node.shards : [node.shardOf(caller.tenant)];
  for (const shard of shards) {
    let after = 0;
    let more = true;
    while (more && !stream.gone.aborted) {
      const from = after;
      const portion: Portion<AuditRow> = await readEntries(shard, filter, (db) =>
        listChain(db, filter, from, EXPORTED_AT_ONCE),
      );
      more = portion.more;
      after = portion.rows.at(-1)?.sequence ?? after;
      const lines = portion.rows.map((row) => `${auditLine(shard.id, row, linkOf(row))}\n`);
      if (lines.length > 0) await stream.write(lines.join(''));
      await nextIteration();
    }
  }
}

/** Entries of one tenant are read behind row-level security; only operators read those of all. */
function readEntries<T>(
  { reads, pool }: Shard,
  { tenant }: AuditFilter,
  work: (db: Queryable) => Promise<T>,
): Promise<T> {
  return tenant === null ? work(pool) : reads.read(tenant, work);
}
