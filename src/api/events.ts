import type { Static } from 'typebox';
import { PunctualError } from '../core/errors.js';
import { ALL_TENANTS, CompiledFilter, type EventFilter } from '../core/events.js';
import { EventQuery } from '../core/schemas/query.js';
import type { Caller } from './caller.js';
import type { NodeContext } from './context.js';
import { forbidden, limitsOf } from './restrictions.js';
import { type AnswerStream, type Route, route } from './route.js';

/** What happens, as it happens. */
export const eventRoutes: readonly Route[] = [
  route({
    id: 'listenToEvents',
    method: 'GET',
    path: '/v1/events',
    tag: 'events',
    summary:
      'Listen to what happens: server-sent events, from now on or after `Last-Event-ID`. The stream begins with `hello`, or with `reset` if events may have been missed.',
    scope: 'read',
    query: EventQuery,
    answers: {
      200: {
        kind: 'stream',
        type: 'text/event-stream; charset=utf-8',
        description:
          'Events for as long as the client listens, each with its id, its type and its data as JSON.',
        headers: {
          'cache-control': 'no-store, no-transform',
          // Proxies would hold a stream back until a buffer is full.
          'x-accel-buffering': 'no',
        },
      },
    },
    run: ({ node, caller, query, call }) =>
      call.stream('events', (stream) => listen(node, caller, query, call.lastEventId, stream)),
  }),
];

/** Tells a caller the events that its query asks for, until it has gone. */
export async function listen(
  node: NodeContext,
  caller: Caller,
  query: Static<typeof EventQuery>,
  lastEventId: string | null,
  stream: AnswerStream,
): Promise<void> {
  const isForAll = query.tenants === 'all';
  if (isForAll && !caller.operator) {
    throw new PunctualError('FORBIDDEN', 'Only an operator may listen to the events of all tenants.');
  }
  const { type, schedule, job, workflow, batch } = query;
  const limits = limitsOf(caller);
  const queue = within(query.queue, limits?.queues ?? null);
  const task = within(query.task, limits?.tasks ?? null);
  const asked: EventFilter = {
    ...(type !== undefined && { types: type.split(',') as NonNullable<EventFilter['types']> }),
    ...(queue && { queue }),
    ...(task && { task }),
    ...(schedule !== undefined && { schedule: schedule.split(',') }),
    ...(job !== undefined && { job: job.split(',') }),
    ...(workflow !== undefined && { workflow: workflow.split(',') }),
    ...(batch !== undefined && { batch: batch.split(',') }),
  };
  const filter = new CompiledFilter(asked, caller.operator);
  // A browser that connects again sends the header, and the query that it began with.
  const after = lastEventId ?? query.after ?? null;
  const { eventFeeds } = node.shardOf(caller.tenant);
  const ring = isForAll ? ALL_TENANTS : caller.tenant;
  await eventFeeds.listen(ring, { filter, after, sample: query.sample ?? null }, stream);
}

/** The names that a query asks for, all of which the key must reach; without any, those that the key reaches. */
function within(asked: string | undefined, allowed: readonly string[] | null): readonly string[] | null {
  const names = asked?.split(',') ?? null;
  if (allowed === null) return names;
  if (names?.some((name) => !allowed.includes(name)))
    throw forbidden('The key is restricted: it hears of its own queues and tasks only.');
  return names ?? allowed;
}
