import Type from 'typebox';
import { defaulted, nullable, strict } from './object.js';

const minutes = (most: number, description: string) =>
  strict({ minutes: defaulted(Type.Integer({ minimum: 1, maximum: most, default: 60, description })) });

/** How far ahead to look. */
export const ForecastQuery = minutes(1_440, 'How many minutes ahead.');

/** How far back to look. */
export const QueueHistoryQuery = minutes(1_440, 'How many minutes back.');

const Time = Type.String({ format: 'date-time' });

/** What becomes due. */
export const ForecastView = Type.Object(
  {
    data: Type.Array(
      Type.Object({
        at: Time,
        jobs: Type.Integer({ description: 'Jobs that were submitted and become due in this minute.' }),
        occurrences: Type.Integer({
          description: 'Occurrences of schedules; each starts a job, a workflow or a batch.',
        }),
        herd: Type.Boolean({ description: 'Whether the minute has far more to do than the others.' }),
        slotsWanted: nullable(Type.Integer({ description: 'Slots that can do it within the minute.' })),
      }),
    ),
    next: Type.Null(),
    averageRunMs: nullable(
      Type.Integer({
        description: 'How long attempts took on average since the leader began; null if none has ended.',
      }),
    ),
    slots: nullable(Type.Integer({ description: 'Slots of the live workers.' })),
    slotsWanted: nullable(Type.Integer({ description: 'Slots that can do the most busy minute.' })),
    soonest: Type.Array(Type.Object({ tenant: Type.String(), schedule: Type.String(), at: Time }), {
      description: 'The schedules that are due next, also beyond these minutes; at most ten.',
    }),
    complete: Type.Boolean({ description: 'Whether everything was counted; else there is more than shown.' }),
  },
  { title: 'Forecast' },
);

/** What a queue did. */
export const QueueHistoryView = Type.Object(
  {
    queue: Type.String(),
    data: Type.Array(
      Type.Object({
        minute: Time,
        ended: Type.Integer({ description: 'Attempts that ended.' }),
        ready: Type.Integer({
          description: 'Due jobs at the end of the minute, as far as the leader had them in memory.',
        }),
        oldestReadyMs: Type.Integer({ description: 'How long the one that starts next had been due.' }),
      }),
    ),
    next: Type.Null(),
  },
  { title: 'QueueHistory' },
);

/** What jobs wait for. */
export const WaitingView = Type.Object(
  {
    data: Type.Array(
      Type.Object({
        reason: Type.String({ description: 'The gate, as `GET /v1/jobs/{id}/why` names it.' }),
        jobs: Type.Integer(),
        oldestReadyMs: Type.Integer(),
        queues: Type.Array(Type.Object({ queue: Type.String(), jobs: Type.Integer() })),
      }),
    ),
    next: Type.Null(),
    running: Type.Integer({ description: 'Jobs that do not wait, but run.' }),
    complete: Type.Boolean({
      description: 'Whether the leader has all live jobs in memory; else there are more.',
    }),
    later: Type.Optional(
      Type.Object(
        {
          held: Type.Integer({ description: 'Jobs on hold.' }),
          blocked: Type.Integer({
            description:
              'Steps that wait for others, for an event or a time, and members of batches that wait.',
          }),
          notDue: Type.Integer({ description: 'Jobs that are not due for long.' }),
          complete: Type.Boolean({ description: 'Whether all of them were counted.' }),
        },
        {
          description: 'Jobs that are not live, of more than ten thousand the newest; with `include=later`.',
        },
      ),
    ),
  },
  { title: 'Waiting' },
);
