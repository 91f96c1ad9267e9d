import type { Clock, Timer } from '../src/core/clock.js';

interface Pending {
  /** On the steady clock if `isSteady`, else on the database's. */
  readonly moment: number;
  readonly isSteady: boolean;
  readonly run: () => void;
}

/**
 * Time that stands still until a test moves it. It begins now, because moments that the database makes itself
 * must not lie far away from it.
 */
export class TestClock implements Clock {
  readonly #pending = new Set<Pending>();
  #steady = Date.now();
  #setBack = 0;

  now(): number {
    return this.#steady - this.#setBack;
  }

  /** A test that moves time means all of it. */
  steady(): number {
    return this.#steady;
  }

  at(moment: number, run: () => void): Timer {
    return this.#wait({ moment, isSteady: false, run });
  }

  after(ms: number, run: () => void): Timer {
    return this.#wait({ moment: this.#steady + ms, isSteady: true, run });
  }

  /** Moves time forward; what becomes due on the way runs at its own moment, in order. */
  advance(ms: number): void {
    const end = this.#steady + ms;
    for (;;) {
      const next = this.#earliest();
      if (!next || this.#steadyMoment(next) > end) break;
      this.#steady = Math.max(this.#steady, this.#steadyMoment(next));
      this.#fire(next);
    }
    this.#steady = end;
  }

  /** Sets the database's clock back; no less time has passed for that. */
  setBack(ms: number): void {
    this.#setBack += ms;
  }

  #wait(pending: Pending): Timer {
    this.#pending.add(pending);
    // What is due already runs in a later turn, as a timer of zero milliseconds would.
    if (this.#steadyMoment(pending) <= this.#steady) setImmediate(() => this.#fireDue());
    return { cancel: () => void this.#pending.delete(pending) };
  }

  #steadyMoment({ moment, isSteady }: Pending): number {
    return isSteady ? moment : moment + this.#setBack;
  }

  #fireDue(): void {
    for (;;) {
      const next = this.#earliest();
      if (!next || this.#steadyMoment(next) > this.#steady) return;
      this.#fire(next);
    }
  }

  #fire(pending: Pending): void {
    this.#pending.delete(pending);
    pending.run();
  }

  #earliest(): Pending | undefined {
    let earliest: Pending | undefined;
    for (const each of this.#pending) {
      if (!earliest || this.#steadyMoment(each) < this.#steadyMoment(earliest)) earliest = each;
    }
    return earliest;
  }
}
