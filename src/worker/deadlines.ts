import { type Clock, EarliestTimer } from '../core/clock.js';
import { monotonic } from './monotonic.js';

/** Something that must have ended by `dueAt` (milliseconds on the clock in use). */
export interface Timed {
  dueAt: number;
  expire(): void;
}

/**
 * Deadlines of everything that runs, on one timer. Nearly all attempts end long before their deadline, so
 * adding and removing must cost next to nothing, and looking through all of them is left to the rare moment
 * when the earliest one is due.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #entries = new Set<Timed>();
  readonly #timer: EarliestTimer;

  constructor(clock: Clock = monotonic) {
    this.#clock = clock;
    this.#timer = new EarliestTimer(clock, () => this.#look());
  }

  add(entry: Timed): void {
    this.#entries.add(entry);
    this.#timer.arm(entry.dueAt);
  }

  remove(entry: Timed): void {
    this.#entries.delete(entry);
  }

  /** Drops all deadlines for good; nothing expires any more. */
  clear(): void {
    this.#entries.clear();
    this.#timer.stop();
  }

  #look(): void {
    const now = this.#clock.now();
    const due: Timed[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const entry of this.#entries) {
      if (entry.dueAt <= now) due.push(entry);
      else if (entry.dueAt < next) next = entry.dueAt;
    }
    for (const entry of due) this.#entries.delete(entry);
    if (next < Number.POSITIVE_INFINITY) this.#timer.arm(next);
    for (const entry of due) entry.expire();
  }
}
