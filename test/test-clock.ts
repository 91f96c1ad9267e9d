import type { Clock, Timer } from '../src/core/clock.js';

interface Pending {
  readonly moment: number;
  readonly run: () => void;
}

/**
 * Time that stands still until a test moves it. It begins now, because moments that the database makes itself
 * must not lie far away from it.
 */
export class TestClock implements Clock {
  readonly #pending = new Set<Pending>();
  #now = Date.now();

  now(): number {
    return this.#now;
  }

  /** A test that moves time means all of it. */
  steady(): number {
    return this.#now;
  }

  at(moment: number, run: () => void): Timer {
    const pending: Pending = { moment, run };
    this.#pending.add(pending);
    // What is due already runs in a later turn, as a timer of zero milliseconds would.
    if (moment <= this.#now) setImmediate(() => this.#fireDue());
    return { cancel: () => void this.#pending.delete(pending) };
  }

  /** Moves time forward; what becomes due on the way runs at its own moment, in order. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const next = this.#earliest();
      if (!next || next.moment > end) break;
      this.#now = Math.max(this.#now, next.moment);
      this.#fire(next);
    }
    this.#now = end;
  }

  #fireDue(): void {
    for (let next = this.#earliest(); next && next.moment <= this.#now; next = this.#earliest()) {
      this.#fire(next);
    }
  }

  #fire(pending: Pending): void {
    this.#pending.delete(pending);
    pending.run();
  }

  #earliest(): Pending | undefined {
    let earliest: Pending | undefined;
    for (const each of this.#pending) if (!earliest || each.moment < earliest.moment) earliest = each;
    return earliest;
  }
}
