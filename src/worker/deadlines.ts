import { type Clock, EarliestTimer } from '../core/clock.js';
import { monotonic } from './worker-clock.js';

/** An entry that expires at `dueAt`, in milliseconds of the clock in use. */
export interface Timed {
  dueAt: number;
  expire(): void;
}

/**
 * The deadlines of all attempts, on one timer. Nearly all attempts end long before their deadline, so adding and
 * removing are O(1), and the entries are scanned only when the timer fires, which is rare.
 */
export class Deadlines {
  readonly #clock: Clock;
  readonly #entries = new Set<Timed>();
  readonly #timer: EarliestTimer;

  constructor(clock: Clock = monotonic) {
    this.#clock = clock;
    this.#timer = new EarliestTimer(clock, () => this.#expireDue());
  }

  add(entry: Timed): void {
    this.#entries.add(entry);
    this.#timer.arm(entry.dueAt);
  }

  remove(entry: Timed): void {
    this.#entries.delete(entry);
  }

  /** Removes all entries for good; nothing expires any more. */
  clear(): void {
    this.#entries.clear();
    this.#timer.stop();
  }

  #expireDue(): void {
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
