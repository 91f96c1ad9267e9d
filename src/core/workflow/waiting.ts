import { formatDuration, parseDuration } from '../duration.js';
import type { JobError } from '../job.js';
import type { WorkflowStep } from '../workflow.js';

/** Steps that wait for a time or an event instead of running a job. */

/** What a step waits for. */
export type Waits = NonNullable<WorkflowStep['wait']>;

/** When a step that begins to wait at `now` has waited long enough; null if it waits for its event however long. */
export function wakeAt(wait: Waits, now: number): number | null {
  const duration = typeof wait === 'string' ? wait : wait.timeout;
  return duration === undefined ? null : now + parseDuration(duration)!;
}

/** The name of the event that a step waits for; null if it waits for a time. */
export function eventOf(wait: Waits): string | null {
  return typeof wait === 'string' ? null : wait.event;
}

/** The error of a step whose event has not come in time. */
export function timedOut(wait: Waits): JobError {
  const event = eventOf(wait);
  const ms = parseDuration(typeof wait === 'string' ? wait : (wait.timeout ?? '0s')) ?? 0;
  return {
    code: 'EVENT_TIMEOUT',
    message: `The event "${event}" did not come within ${formatDuration(ms)}.`,
  };
}
