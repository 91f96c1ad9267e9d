import type { Clock, Timer } from '../core/clock.js';
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
  #timer: Timer | null = null;
  #timerAt = Number.POSITIVE_INFINITY;

  constructor(clock: Clock = monotonic) {
    this.#clock = clock;
  }

  add(entry: Timed): void {
    this.#entries.add(entry);
    if (entry.dueAt < this.#timerAt) this.#arm(entry.dueAt);
  }

  remove(entry: Timed): void {
    this.#entries.delete(entry);
  }

  /** Removes all entries; nothing expires any more. */
  clear(): void {
    this.#entries.clear();
    this.#timer?.cancel();
    this.#timerAt = Number.POSITIVE_INFINITY;
  }

  #arm(at: number): void {
    this.#timer?.cancel();
    this.#timerAt = at;
    this.#timer = this.#clock.at(at, () => this.#expireDue());
  }

  #expireDue(): void {
    const now = this.#clock.now();
    this.#timerAt = Number.POSITIVE_INFINITY;
    const due: Timed[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (const entry of this.#entries) {
      if (entry.dueAt <= now) due.push(entry);
      else if (entry.dueAt < next) next = entry.dueAt;
    }
    for (const entry of due) this.#entries.delete(entry);
    if (next < Number.POSITIVE_INFINITY) this.#arm(next);
    for (const entry of due) entry.expire();
  }
}
