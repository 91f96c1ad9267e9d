import { type Clock, EarliestTimer } from '../core/clock.js';
import { monotonic } from './worker-clock.js';

/** An entry that expires at `dueAt`, in milliseconds of the clock in use, and its place in the list of entries. */
export abstract class Timed {
  dueAt = Number.POSITIVE_INFINITY;
  isTimed = false;
  previousTimed: Timed | null = null;
  nextTimed: Timed | null = null;

  abstract expire(): void;
}

/**
 * The deadlines of all attempts, on one timer. Nearly all attempts end long before their deadline, so adding and
 * removing are O(1), and the entries are scanned only when the timer fires, which is rare. They form an intrusive linked
 * list: a Set that thousands enter and leave every second is copied again and again as it grows and shrinks.
 */
export class Deadlines {
  readonly #clock: Clock;
  #first: Timed | null = null;
  readonly #timer: EarliestTimer;

  constructor(clock: Clock = monotonic) {
    this.#clock = clock;
    this.#timer = new EarliestTimer(clock, () => this.#expireDue());
  }

  add(entry: Timed): void {
    if (!entry.isTimed) this.#link(entry);
    this.#timer.arm(entry.dueAt);
  }

  remove(entry: Timed): void {
    if (!entry.isTimed) return;
    const { previousTimed, nextTimed } = entry;
    if (previousTimed) previousTimed.nextTimed = nextTimed;
    else this.#first = nextTimed;
    if (nextTimed) nextTimed.previousTimed = previousTimed;
    entry.isTimed = false;
    entry.previousTimed = null;
    entry.nextTimed = null;
  }

  /** Removes all entries for good; nothing expires any more. */
  clear(): void {
    while (this.#first) this.remove(this.#first);
    this.#timer.stop();
  }

  #link(entry: Timed): void {
    entry.isTimed = true;
    entry.nextTimed = this.#first;
    if (this.#first) this.#first.previousTimed = entry;
    this.#first = entry;
  }

  #expireDue(): void {
    const now = this.#clock.now();
    const due: Timed[] = [];
    let next = Number.POSITIVE_INFINITY;
    for (let entry = this.#first; entry; entry = entry.nextTimed) {
      if (entry.dueAt <= now) due.push(entry);
      else if (entry.dueAt < next) next = entry.dueAt;
    }
    for (const entry of due) this.remove(entry);
    if (next < Number.POSITIVE_INFINITY) this.#timer.arm(next);
    for (const entry of due) entry.expire();
  }
}
