import { type EventType, type FilteredEvent, type PunctualEvent, serverSentEvent } from './events.js';

/** An event in a ring. */
export interface RingEntry extends FilteredEvent {
  /** The whole message of the stream: it is made once and sent to everybody. */
  readonly text: string;
}

/** An entry; always with all fields, so that all entries have one shape. */
export function ringEntry(
  type: EventType,
  { job, queue, task, schedule, workflow, batch, operator }: Omit<Partial<FilteredEvent>, 'type'>,
  text: string,
): RingEntry {
  return { type, job, queue, task, schedule, workflow, batch, operator, text: inOnePiece(text) };
}

/**
 * V8 keeps text that was put together as a tree of its pieces until a character of it is read. A ring of such trees is
 * several times as large and slow to collect.
 */
function inOnePiece(text: string): string {
  return text.charCodeAt(0) >= 0 ? text : '';
}

/** The JSON of an event in its message. */
export function dataOf({ text }: RingEntry): string {
  return text.slice(text.indexOf(DATA) + DATA.length, -2);
}

const DATA = '\ndata: ';

/** The entry that another node has for the event with this JSON. */
export function entryOf(data: string): RingEntry {
  const event = JSON.parse(data) as PunctualEvent;
  return ringEntry(event.type, event, serverSentEvent(event.id, event.type, data));
}

/** How much a ring keeps. */
export interface RingLimits {
  readonly events: number;
  /** Of text, in characters. */
  readonly characters: number;
}

/** How much one ring keeps if there are few, and how many characters all rings of a process keep together. */
const MOST = { events: 16_384, characters: 4 * 1024 * 1024, together: 64 * 1024 * 1024 };

/** How much one of so many rings keeps. */
export function ringLimits(rings: number): RingLimits {
  const characters = Math.min(MOST.characters, MOST.together / Math.max(1, rings));
  return { events: MOST.events, characters };
}

/** Forgotten events are removed in such numbers, because moving the rest costs more than one event. */
const REMOVED_TOGETHER = 4_096;

/**
 * The newest events of one stream, each with a number that is one higher than the one before. What is too old is
 * forgotten.
 */
export class EventRing {
  private entries: RingEntry[] = [];
  /** How many of `entries` are forgotten; they are removed when there are many. */
  private forgotten = 0;
  private characters = 0;
  private forgottenUpTo: number;

  /** A ring whose first event will have the number after `base`. */
  constructor(base: number) {
    this.forgottenUpTo = base;
  }

  /** The lowest number after which every event is known. */
  get base(): number {
    return this.forgottenUpTo;
  }

  /** The number of the newest event, or the base. */
  get last(): number {
    return this.forgottenUpTo + this.entries.length - this.forgotten;
  }

  /** Adds an event and forgets what is too much. */
  add(entry: RingEntry, limits: RingLimits): void {
    this.entries.push(entry);
    this.characters += entry.text.length;
    while (
      this.entries.length - this.forgotten > limits.events ||
      (this.characters > limits.characters && this.entries.length > this.forgotten)
    ) {
      this.characters -= this.entries[this.forgotten]!.text.length;
      this.forgotten += 1;
      this.forgottenUpTo += 1;
    }
    if (this.forgotten >= REMOVED_TOGETHER) {
      this.entries = this.entries.slice(this.forgotten);
      this.forgotten = 0;
    }
  }

  /**
   * The events after the one with this number, the oldest first, until they have so many characters together; at least
   * one if there is one. Null if it is not known what came after that number.
   */
  after(sequence: number, characters = Number.POSITIVE_INFINITY): readonly RingEntry[] | null {
    if (sequence < this.forgottenUpTo || sequence > this.last) return null;
    const from = this.forgotten + sequence - this.forgottenUpTo;
    if (characters === Number.POSITIVE_INFINITY) return this.entries.slice(from);
    let end = from;
    for (let left = characters; end < this.entries.length && left > 0; end++)
      left -= this.entries[end]!.text.length;
    return this.entries.slice(from, end);
  }
}
