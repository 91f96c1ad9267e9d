import { PunctualError } from '../core/errors.js';
import type { EventFilter, EventType, PunctualEvent } from '../core/events.js';
import type { OptionNames } from '../core/known-options.js';
import { GrowingPause, pause } from '../transport/pause.js';
import type { Transport } from '../transport/transport.js';
import { queryText } from './pages.js';
import { readMessages, type StreamMessage } from './server-sent-events.js';

/** Which events to listen to: those to which everything applies that is given, and of a list any. */
export interface EventOptions extends EventFilter {
  /** Resume after the event with this id; default: from now on. */
  readonly after?: string;
  /** Listen to all tenants; for operators only. */
  readonly allTenants?: boolean;
  /** Of more events a second than these, only how many there were of each type is told, as `sum`; at most 1,000. */
  readonly sample?: number;
  /** Ends the iteration with its reason. */
  readonly signal?: AbortSignal;
}

export const EVENT_OPTIONS: OptionNames<EventOptions> = {
  types: true,
  queue: true,
  task: true,
  schedule: true,
  job: true,
  workflow: true,
  batch: true,
  after: true,
  allTenants: true,
  sample: true,
  signal: true,
};

/** The stream has begun: whatever happens from now on is told. What was before can be read now. */
export interface HelloEvent {
  readonly type: 'hello';
  readonly id: string;
}

/** Events may have been missed: read anew what you need to know. What happens from now on is told. */
export interface ResetEvent {
  readonly type: 'reset';
  readonly id: string;
  /** Another node leads, the id was too old, or events were lost on the way. */
  readonly reason: 'new-leader' | 'too-old' | 'gap';
}

/** How many events there were besides those that were told, because only a sample was asked for. */
export interface SumEvent {
  readonly type: 'sum';
  readonly id: string;
  readonly at: string;
  /** Counts by type. */
  readonly events: Readonly<Partial<Record<EventType, number>>>;
}

/** What a stream of events yields; `sum` only if a sample was asked for. */
export type StreamedEvent = PunctualEvent | HelloEvent | ResetEvent | SumEvent;

/**
 * Yields events as they happen. When the connection is lost, it is opened again, and the stream goes on after the last
 * event; where that is not possible, it yields `reset`. It ends only by its signal, or if the server refuses.
 */
export async function* listenToEvents(
  transport: Transport,
  options: EventOptions = {},
): AsyncGenerator<StreamedEvent, void, undefined> {
  const { signal } = options;
  const growing = new GrowingPause(100, 5_000);
  let last = options.after;
  let hasBegun = false;
  for (;;) {
    signal?.throwIfAborted();
    try {
      for await (const message of readMessages(await open(transport, options, last))) {
        growing.reset();
        last = message.id;
        // After a lost connection, a stream that goes on where it was says nothing new.
        const isNews = message.event !== 'hello' || !hasBegun;
        hasBegun = true;
        if (isNews) yield eventOf(message);
      }
    } catch (error) {
      signal?.throwIfAborted();
      // Many connect again in the same moment when a node has stopped; a key may make too many requests then.
      const isPassing = error instanceof PunctualError && (error.status === 503 || error.status === 429);
      if (!isPassing || !hasBegun) throw error;
    }
    await pause(growing.nextMs(), signal);
  }
}

function open(
  transport: Transport,
  options: EventOptions,
  after: string | undefined,
): Promise<AsyncIterable<string>> {
  if (!transport.stream) throw new PunctualError('CONFIGURATION', 'The transport cannot carry events.');
  const { types, queue, task, schedule, job, workflow, batch, allTenants, sample, signal } = options;
  const query = queryText({
    type: types?.join(','),
    queue: queue?.toString(),
    task: task?.toString(),
    schedule: schedule?.toString(),
    job: job?.toString(),
    workflow: workflow?.toString(),
    batch: batch?.toString(),
    tenants: allTenants ? 'all' : undefined,
    sample: sample?.toString(),
  });
  return transport.stream(`/v1/events${query}`, {
    headers: {
      accept: 'text/event-stream',
      ...(after !== undefined && { 'last-event-id': after }),
    },
    ...(signal && { signal }),
  });
}

function eventOf({ event, data }: StreamMessage): StreamedEvent {
  const parsed = JSON.parse(data) as Record<string, unknown>;
  return { ...parsed, type: event as EventType } as StreamedEvent;
}
