import { PunctualError } from '../core/errors.js';
import { ALL_TENANTS, CompiledFilter, type EventFilter } from '../core/events.js';
import { EventQuery } from '../core/schemas/query.js';
import { type Route, route } from './route.js';

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
        description: 'Events for as long as the client listens, each with its id, its type and its data as JSON.',
        headers: {
          'cache-control': 'no-store, no-transform',
          // Proxies would hold a stream back until a buffer is full.
          'x-accel-buffering': 'no',
        },
      },
    },
    run: ({ node, caller, query, call }) => {
      const isForAll = query.tenants === 'all';
      if (isForAll && !caller.operator) {
        throw new PunctualError('FORBIDDEN', 'Only an operator may listen to the events of all tenants.');
      }
      const { type, queue, task, schedule, job } = query;
      const filter = new CompiledFilter({
        ...(type !== undefined && { types: type.split(',') as NonNullable<EventFilter['types']> }),
        ...(queue !== undefined && { queues: queue.split(',') }),
        ...(task !== undefined && { tasks: task.split(',') }),
        ...(schedule !== undefined && { schedules: schedule.split(',') }),
        ...(job !== undefined && { jobs: job.split(',') }),
      });
      // A browser that connects again sends the header, and the query that it began with.
      const after = call.lastEventId ?? query.after ?? null;
      const { eventFeeds } = node.shardOf(caller.tenant);
      const ring = isForAll ? ALL_TENANTS : caller.tenant;
      return call.stream('events', (stream) => eventFeeds.listen(ring, filter, after, stream));
    },
  }),
];
