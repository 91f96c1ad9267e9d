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

/** The queues of a tenant. */
export const QueuePage = page('QueuePage', QueueView);
