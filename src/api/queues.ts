import { PunctualError } from '../core/errors.js';
import { DEFAULT_QUEUE_LIMITS, type QueueLimits } from '../core/limits.js';
import { rateOf } from '../core/rate.js';
import { QueueHistoryQuery, QueueHistoryView, WaitingView } from '../core/schemas/ahead.js';
import { QueueChange } from '../core/schemas/limits.js';
import { NamePath, PageQuery, ShortListQuery, WaitingQuery } from '../core/schemas/query.js';
import { QueuePage, QueueView, UnservedPage } from '../core/schemas/queue.js';
import type * as wire from '../core/wire.js';
import { type Unserved, UnservedCursor } from '../dispatch/unserved-jobs.js';
import { countWaitingLater } from '../store/count-later.js';
import type { QueueRow } from '../store/names.js';
import { readQueueMinutes } from '../store/queue-minutes.js';
import { findQueue, listQueues, rateOfRow } from '../store/queues.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { wrongCursor } from './id-range.js';
import { answerOf } from './idempotency.js';
import { writePage } from './page-text.js';
import { forbidden, limitsOf, mayTouchQueue } from './restrictions.js';
import { json, type Route, route } from './route.js';

const MINUTE_MS = 60_000;
/** Queues of a list that one statement reads. */
const PORTION = 200;

/** Kinds of jobs without a worker that are looked for at once: all of the largest page. */
const UNSERVED_PORTION = 1_000;

/** Reading, limiting, pausing and resuming queues, which are made on first use. */
export const queueRoutes: readonly Route[] = [
  route({
    id: 'listQueues',
    method: 'GET',
    path: '/v1/queues',
    tag: 'queues',
    summary: 'List the queues by name.',
    scope: 'read',
    query: ShortListQuery,
    answers: { 200: QueuePage },
    run: async ({ node, caller, query: { limit, after = '' } }) => {
      const shard = node.shardOf(caller.tenant);
      const { settings } = await shard.leader();
      return writePage<QueueRow>(limit, {
        portion: PORTION,
        read: (last, size) => listQueues(shard.pool, caller.tenant, last?.name ?? after, size.rows),
        isShown: ({ name }) => mayTouchQueue(caller, name),
        write: (row) => JSON.stringify(settings.queueView(row)),
        cursor: (row) => row.name,
      });
    },
  }),
  route({
    id: 'getQueue',
    method: 'GET',
    path: '/v1/queues/:name',
    tag: 'queues',
    summary: 'Read a queue with its figures.',
    scope: 'read',
    params: NamePath,
    answers: { 200: QueueView },
    run: ({ node, caller, params }) => viewQueue(node, caller, params.name),
  }),
  route({
    id: 'changeQueue',
    audit: 'queue.change',
    method: 'PATCH',
    path: '/v1/queues/:name',
    tag: 'queues',
    summary: 'Change the share and the limits of a queue; one that does not exist yet comes into being.',
    scope: 'admin',
    params: NamePath,
    body: json(QueueChange),
    answers: { 200: QueueView },
    run: async ({ node, caller, params: { name }, body, call }) => {
      if (!mayTouchQueue(caller, name)) throw notFound(name);
      const { settings } = await node.shardOf(caller.tenant).leader();
      const change = (row: QueueRow | null): QueueLimits => ({
        weight: body.weight ?? row?.weight ?? DEFAULT_QUEUE_LIMITS.weight,
        concurrency: body.concurrency === undefined ? (row?.concurrency ?? null) : body.concurrency,
        keyConcurrency: body.keyConcurrency ?? row?.key_concurrency ?? DEFAULT_QUEUE_LIMITS.keyConcurrency,
        rate: body.rate === undefined ? row && rateOfRow(row) : body.rate && rateOf(body.rate),
      });
      await settings.limitQueue(caller.tenant, name, change, call.author);
      return viewQueue(node, caller, name);
    },
  }),
  route({
    id: 'listUnserved',
    method: 'GET',
    path: '/v1/unserved',
    tag: 'queues',
    summary: 'List ready jobs that no live worker has served for a while, by queue and by what they need.',
    scope: 'read',
    query: PageQuery,
    answers: { 200: UnservedPage },
    run: async ({ node, caller, query: { limit, after } }) => {
      const cursor = after === undefined ? null : UnservedCursor.parse(after);
      if (cursor === undefined) throw wrongCursor();
      const { unserved } = await node.shardOf(caller.tenant).leader();
      return writePage<Unserved>(limit, {
        portion: UNSERVED_PORTION,
        read: (last, { rows }) => unserved.list(caller.tenant, last?.cursor ?? cursor, rows),
        isShown: ({ view }) => mayTouchQueue(caller, view.queue),
        write: ({ view }) => JSON.stringify(view),
        cursor: (row) => row.cursor.text,
      });
    },
  }),
  route({
    id: 'getQueueHistory',
    method: 'GET',
    path: '/v1/queues/:name/history',
    tag: 'queues',
    summary: 'What a queue did, by the minute, for up to a day: ends of attempts, due jobs and their age.',
    scope: 'read',
    params: NamePath,
    query: QueueHistoryQuery,
    answers: { 200: QueueHistoryView },
    run: async ({ node, caller, params: { name }, query: { minutes } }): Promise<wire.QueueHistoryView> => {
      const { pool, clock } = node.shardOf(caller.tenant);
      const row = await findQueue(pool, caller.tenant, name);
      if (!row || !mayTouchQueue(caller, name)) throw notFound(name);
      const to = Math.floor(clock.now() / MINUTE_MS) * MINUTE_MS;
      const from = to - minutes * MINUTE_MS;
      const rows = new Map(
        (await readQueueMinutes(pool, row.id, from, to)).map((each) => [each.minute, each]),
      );
      const data = Array.from({ length: minutes }, (_, i) => {
        const minute = from + i * MINUTE_MS;
        const { ended = 0, ready = 0, oldestReadyMs = 0 } = rows.get(minute) ?? {};
        return { minute: new Date(minute).toISOString(), ended, ready, oldestReadyMs };
      });
      return { queue: name, data, next: null };
    },
  }),
  route({
    id: 'listWaiting',
    method: 'GET',
    path: '/v1/waiting',
    tag: 'queues',
    summary:
      'What live jobs wait for, by reason, with the queues that have the most of them. With `include=later`, also how many jobs are ' +
      'not live: on hold, blocked, or not due for long.',
    scope: 'read',
    query: WaitingQuery,
    answers: { 200: WaitingView },
    run: async ({ node, caller, query: { include } }) => {
      const limits = limitsOf(caller) ?? null;
      if (limits?.tasks)
        throw forbidden('A key that is restricted to tasks is not shown what all jobs wait for.');
      const shard = node.shardOf(caller.tenant);
      const tenant = caller.allTenants ? null : caller.tenant;
      const { waitingJobs } = await shard.leader();
      const live = await waitingJobs.byReason(tenant, limits);
      if (include === undefined) return live;
      if (limits)
        throw forbidden('A key that is restricted to queues is not shown how many jobs are not live.');
      const later =
        tenant === null
          ? await countWaitingLater(shard.pool, null)
          : await shard.reads.read(tenant, (db) => countWaitingLater(db, tenant));
      return { ...live, later };
    },
  }),
  pausing('pause', true, 'Stop handing out jobs of a queue; running ones go on.'),
  pausing('resume', false, 'Hand out jobs of a queue again.'),
];

function pausing(verb: 'pause' | 'resume', paused: boolean, summary: string): Route {
  return route({
    id: `${verb}Queue`,
    audit: `queue.${verb}`,
    method: 'POST',
    path: `/v1/queues/:name/${verb}`,
    tag: 'queues',
    summary: `${summary} Already so: 409.`,
    scope: 'admin',
    params: NamePath,
    answers: { 200: QueueView },
    idempotent: true,
    run: async ({ node, caller, params: { name }, call }) => {
      if (!mayTouchQueue(caller, name)) throw notFound(name);
      const shard = node.shardOf(caller.tenant);
      const { settings } = await shard.leader();
      return answerOf<QueueRow | null, wire.QueueView>(
        shard,
        call,
        (requested) => settings.pauseQueue(caller.tenant, name, paused, requested),
        (_, row) => settings.queueView(row!),
      );
    },
  });
}

async function viewQueue(node: NodeContext, caller: Caller, name: string): Promise<wire.QueueView> {
  const shard = node.shardOf(caller.tenant);
  const leader = await shard.leader();
  const row = await findQueue(shard.pool, caller.tenant, name);
  if (!row || !mayTouchQueue(caller, name)) throw notFound(name);
  return leader.settings.queueView(row);
}

function notFound(name: string): PunctualError {
  return new PunctualError('QUEUE_NOT_FOUND', `There is no queue ${name}.`);
}
