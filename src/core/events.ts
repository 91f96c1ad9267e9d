import type { JobState } from './job.js';

/**
 * Events: what the leader tells whoever listens, as it happens. They are never stored. An event names what changed; the
 * API says how it is now.
 */

/** The types of events. */
export const EVENT_TYPES = [
  'job.submitted',
  'job.started',
  'job.progress',
  'job.retrying',
  'job.succeeded',
  'job.failed',
  'job.cancelled',
  'job.skipped',
  'job.changed',
  'batch.submitted',
  'batch.started',
  'batch.succeeded',
  'batch.failed',
  'batch.cancelled',
  'batch.retried',
  'batch.waiting',
  'batch.stopping',
  'workflow.submitted',
  'workflow.changed',
  'workflow.stopping',
  'workflow.succeeded',
  'workflow.failed',
  'workflow.cancelled',
  'workflow.retried',
  'queue.paused',
  'queue.resumed',
  'queue.changed',
  'worker.registered',
  'worker.draining',
  'worker.left',
  'worker.dead',
  'schedule.fired',
  'schedule.missed',
  'schedule.changed',
  'origin.opened',
  'origin.closed',
  'origin.paused',
  'leader.elected',
] as const;
/** The type of an event. */
export type EventType = (typeof EVENT_TYPES)[number];

/** The type of a message that tells how many events there were, for listeners who ask for a sample. */
export const SUM = 'sum';

/** The most events of a second that a listener may ask to be told one by one, where it asks for a sample. */
export const MOST_SAMPLED = 1_000;

/** What every type of one kind begins with. */
export const EVENT_KINDS = [
  'job',
  'batch',
  'workflow',
  'queue',
  'worker',
  'schedule',
  'origin',
  'leader',
] as const;
/** A kind of events, for filters: `job.*` is every type of jobs. */
export type EventKind = `${(typeof EVENT_KINDS)[number]}.*`;

/** Stands for all tenants: for the events of all of them, which operators hear, and in what is granted for all. No tenant has this name. */
export const ALL_TENANTS = '*';

/** Something that has happened. Fields that do not apply to its type are missing. */
export interface PunctualEvent {
  /** Where the stream stands after it, as `epoch.sequence`: what to resume from. */
  readonly id: string;
  readonly type: EventType;
  readonly at: string;
  /** Missing if it is about the cluster. */
  readonly tenant?: string;
  /** The id of the job. */
  readonly job?: string;
  /** The id of the batch, also in events of its jobs. */
  readonly batch?: string;
  /** The id of the workflow, also in events of its jobs. */
  readonly workflow?: string;
  readonly queue?: string;
  readonly task?: string;
  /** The number of the attempt. */
  readonly attempt?: number;
  /** The id of the worker. */
  readonly worker?: string;
  /** Set if the worker belongs to the operators, who alone are told of it. */
  readonly operator?: true;
  readonly schedule?: string;
  /** The state of the job, batch or workflow since. */
  readonly state?: JobState;
  /** What was done to the job or the schedule, such as `hold`, `redrive` or `paused`; why a workflow or batch stops. */
  readonly change?: string;
  /** The code of the error, if there was one that has a code. */
  readonly errorCode?: string;
  /** How far the attempt has come, from 0 to 1. */
  readonly progress?: number;
  /** Why it was done, if the leader did it by itself: `gone` for a schedule whose URL answered 410. */
  readonly reason?: string;
  /** The origin that http targets call, or the bucket that it is in. */
  readonly origin?: string;
  /** Until when no call to the origin starts. */
  readonly until?: string;
  /** How many occurrences were missed, or how many calls have failed in a row. */
  readonly count?: number;
  /** The term of the leader. */
  readonly epoch?: number;
}

/** What the events of a stream are about: everything that is given must apply, and of a list any. */
export interface EventFilter {
  /** Types, or all of a kind, such as `job.*`. */
  readonly types?: readonly (EventType | EventKind)[];
  readonly queue?: string | readonly string[];
  readonly task?: string | readonly string[];
  readonly schedule?: string | readonly string[];
  /** Ids of jobs. */
  readonly job?: string | readonly string[];
  /** Ids of workflows: their own events, and those of their jobs. */
  readonly workflow?: string | readonly string[];
  /** Ids of batches: their own events, and those of their jobs. */
  readonly batch?: string | readonly string[];
}

/** The part of an event that filters look at. */
export interface FilteredEvent {
  readonly type: EventType;
  readonly job: string | undefined;
  readonly queue: string | undefined;
  readonly task: string | undefined;
  readonly schedule: string | undefined;
  readonly workflow: string | undefined;
  readonly batch: string | undefined;
  /** Whether it is for operators alone. */
  readonly operator?: true | undefined;
}

/** A filter that is applied to thousands of events a second. Filters that let the same through have the same key. */
export class CompiledFilter {
  readonly key: string;
  readonly #types: ReadonlySet<string> | null;
  readonly #sets: readonly (readonly [
    Exclude<keyof FilteredEvent, 'type' | 'operator'>,
    ReadonlySet<string>,
  ])[];

  constructor(
    filter: EventFilter,
    /** Whether it lets through what is for operators alone. */
    private readonly forOperator = true,
  ) {
    this.#types = filter.types ? new Set(filter.types.flatMap(typesOf)) : null;
    this.#sets = (['queue', 'task', 'schedule', 'job', 'workflow', 'batch'] as const).flatMap((name) => {
      const wanted = filter[name];
      return wanted === undefined ? [] : [[name, new Set([wanted].flat())] as const];
    });
    const texts = this.#sets.map(([name, set]) => [name, [...set].sort()]);
    this.key = JSON.stringify([this.#types && [...this.#types].sort(), texts, forOperator]);
  }

  matches(event: FilteredEvent): boolean {
    if (this.#types && !this.#types.has(event.type)) return false;
    if (event.operator && !this.forOperator) return false;
    for (const [name, set] of this.#sets) {
      const value = event[name];
      if (value === undefined || !set.has(value)) return false;
    }
    return true;
  }
}

function typesOf(text: string): string[] {
  if (!text.endsWith('.*')) return [text];
  return EVENT_TYPES.filter((type) => type.startsWith(text.slice(0, -1)));
}

/** Where a stream stands: the term of the leader, and the number of the last event in its ring. */
export interface EventPosition {
  readonly epoch: number;
  readonly sequence: number;
}

/** The rule for ids of events. */
export const EVENT_ID_PATTERN = /^(\d{1,15})\.(\d{1,15})$/;

/** The position that the id of an event means; null if it is none. */
export function parseEventId(id: string): EventPosition | null {
  const match = EVENT_ID_PATTERN.exec(id);
  return match && { epoch: Number(match[1]), sequence: Number(match[2]) };
}

export function eventId(epoch: number, sequence: number): string {
  return `${epoch}.${sequence}`;
}

/** A message of a stream of server-sent events; `data` is JSON on one line. */
export function serverSentEvent(id: string, type: string, data: string): string {
  return `id: ${id}\nevent: ${type}\ndata: ${data}\n\n`;
}
