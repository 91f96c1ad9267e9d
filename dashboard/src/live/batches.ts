import type { PunctualEvent } from '../../../src/core/events.js';
import { whenOthersAreShown } from '../api/client.js';
import { isVisible } from '../api/visibility.js';
import type { LiveMessage } from './messages.js';

/**
 * News for the screens: what came in a quarter of a second is told at once, so that a page has the same work with ten
 * thousand changes a second as with a few.
 */

/** What happened since the batch before. */
export interface Batch {
  readonly events: readonly PunctualEvent[];
  /** How many events of each type there were, with those that were not told one by one. */
  readonly counts: ReadonlyMap<string, number>;
  /** Whether there were events that are not in `events`: rows that are shown may be out of date. */
  readonly isPartial: boolean;
  /** Whether anything at all may have happened, because the stream could not go on where it was. */
  readonly isReset: boolean;
  /** Whether the stream has begun: what was read before that may have changed unheard. */
  readonly isBeginning: boolean;
}

type Listener = (batch: Batch) => void;

const BATCH_MS = 250;
/** A page that nobody sees keeps no more events than these; it is told their number when it is seen again. */
const MOST_KEPT = 500;

const listeners = new Set<Listener>();
let events: PunctualEvent[] = [];
let counts = new Map<string, number>();
let isPartial = false;
let isReset = false;
let isBeginning = false;
let isPlanned = false;

/** Has a function told of every batch; the returned one ends that. */
export function onBatch(run: Listener): () => void {
  listeners.add(run);
  return () => listeners.delete(run);
}

/** Has a function called after events of these types; `job.*` is every type of jobs. */
export function onEvents(types: readonly string[], run: Listener): () => void {
  const fits = (type: string) =>
    types.some((each) => each === type || (each.endsWith('.*') && type.startsWith(each.slice(0, -1))));
  return onBatch((batch) => {
    if (batch.isReset || batch.isBeginning || [...batch.counts.keys()].some(fits)) run(batch);
  });
}

/** Takes messages of the stream for the next batch. */
export function addMessages(messages: readonly LiveMessage[]): void {
  for (const message of messages) {
    if (message.kind === 'reset') isReset = true;
    else if (message.kind === 'hello') isBeginning ||= !message.resumed;
    else if (message.kind === 'event') addEvent(message.event);
    else if (message.kind === 'sum') {
      isPartial = true;
      for (const [type, count] of Object.entries(message.sum.events)) addCount(type, count);
    }
  }
  // Another leader is told at once: whatever is shown may be wrong.
  if (isReset) tell();
  else plan(BATCH_MS);
}

function addEvent(event: PunctualEvent): void {
  addCount(event.type, 1);
  if (events.length < MOST_KEPT) events.push(event);
  else isPartial = true;
}

function addCount(type: string, count: number): void {
  counts.set(type, (counts.get(type) ?? 0) + count);
}

function plan(ms: number): void {
  if (isPlanned) return;
  isPlanned = true;
  setTimeout(tell, ms);
}

function tell(): void {
  isPlanned = false;
  if (!isVisible.value || (counts.size === 0 && !isReset && !isBeginning)) return;
  const batch = { events, counts, isPartial, isReset, isBeginning };
  forget();
  for (const listener of listeners) {
    try {
      listener(batch);
    } catch (error) {
      // One part of the page must not keep the news from the others, nor end the stream.
      reportError(error);
    }
  }
}

function forget(): void {
  events = [];
  counts = new Map();
  isPartial = false;
  isReset = false;
  isBeginning = false;
}

whenOthersAreShown(forget);

isVisible.subscribe((now) => {
  if (now) plan(0);
});
