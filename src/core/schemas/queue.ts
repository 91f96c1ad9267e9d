import Type from 'typebox';
import { RateView } from './limits.js';
import { nullable, page } from './object.js';

/** A queue with its figures. */
export const QueueView = Type.Object(
  {
    name: Type.String(),
    paused: Type.Boolean(),
    ready: Type.Integer(),
    upcoming: Type.Integer(),
    running: Type.Integer(),
    more: Type.Boolean({ description: 'Whether more jobs wait than the figures count.' }),
    weight: Type.Integer({ description: 'Its share beside the other queues of the tenant.' }),
    concurrency: nullable(Type.Integer({ description: 'Jobs that run at the same time at most.' })),
    keyConcurrency: Type.Integer({ description: 'Jobs of one concurrency key that run at the same time.' }),
    rate: nullable(RateView),
    oldestReadyMs: nullable(Type.Integer()),
    createdAt: Type.String({ format: 'date-time' }),
  },
  { title: 'Queue' },
);

/** Ready jobs of one queue with the same needs, which no live worker has served for a while. */
export const UnservedView = Type.Object(
  {
    queue: Type.String(),
    target: Type.String(),
    task: nullable(Type.String({ description: 'The handler that is wanted; null for other targets.' })),
    requires: Type.Unsafe<Record<string, string>>({
      type: 'object',
      additionalProperties: { type: 'string' },
    }),
    ready: Type.Integer({ description: 'The due jobs that the leader has in memory.' }),
    since: Type.String({
      format: 'date-time',
      description: 'Since when there has been no worker, as far as this leader knows.',
    }),
    detail: Type.String(),
  },
  { title: 'Unserved' },
);

/** Jobs of a tenant that no worker serves. */
export const UnservedPage = page('UnservedPage', UnservedView);

/** The queues of a tenant. */
export const QueuePage = page('QueuePage', QueueView);
