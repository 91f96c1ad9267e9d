import Type from 'typebox';
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
    oldestReadyMs: nullable(Type.Integer()),
    createdAt: Type.String({ format: 'date-time' }),
  },
  { title: 'Queue' },
);

/** The queues of a tenant. */
export const QueuePage = page('QueuePage', QueueView);
