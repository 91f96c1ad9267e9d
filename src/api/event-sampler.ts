import type { RingEntry } from '../core/event-ring.js';
import { type CompiledFilter, type EventType, SUM, serverSentEvent } from '../core/events.js';

/** How long events are counted before their sum is told. */
export const WINDOW_MS = 250;
const WINDOWS_PER_SECOND = 1_000 / WINDOW_MS;
/** What happens seldom, and must not be lost among thousands of jobs, may take so many times the room of the rest. */
const ROOM_FOR_RARE = 4;

/** What there may be thousands of in a second. */
const FREQUENT = /^(job|workflow|batch)\.|^schedule\.fired$/;

/**
 * For listeners who ask for at most so many events a second: the first ones of each window are told at once, and of the others
 * how many there were of each type.
 */
export class EventSampler {
  private told = 0;
  private readonly untold = new Map<EventType, number>();

  constructor(
    private readonly filter: CompiledFilter,
    /** The events of a second that are told one by one. */
    readonly perSecond: number,
  ) {}

  /** Whether the window has seen an event, so that it must be ended. */
  get hasBegun(): boolean {
    return this.told > 0 || this.untold.size > 0;
  }

  /** The text of those events that are told; the others are counted. */
  take(entries: readonly RingEntry[]): string {
    const room = Math.max(1, Math.floor(this.perSecond / WINDOWS_PER_SECOND));
    let text = '';
    for (const entry of entries) {
      if (!this.filter.matches(entry)) continue;
      if (this.told < (FREQUENT.test(entry.type) ? room : room * ROOM_FOR_RARE)) {
        this.told += 1;
        text += entry.text;
      } else this.untold.set(entry.type, (this.untold.get(entry.type) ?? 0) + 1);
    }
    return text;
  }

  /** Ends the window: the text of its sum, after which a stream can resume at this id. Empty if every event was told. */
  endWindow(id: string): string {
    const counts = Object.fromEntries(this.untold);
    const isWhole = this.untold.size === 0;
    this.forget();
    if (isWhole) return '';
    const sum = { id, at: new Date().toISOString(), events: counts };
    return serverSentEvent(id, SUM, JSON.stringify(sum));
  }

  /** Forgets the window, because everybody is told to read anew. */
  forget(): void {
    this.told = 0;
    this.untold.clear();
  }
}
