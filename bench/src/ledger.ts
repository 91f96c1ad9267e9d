import { now } from './moments.js';

/** What became of the jobs of a slice. */
export interface Account {
  readonly started: number;
  readonly missing: number;
  readonly doubled: number;
  /** Starts in each second since the beginning. */
  readonly perSecond: readonly number[];
}

/** Who knows which jobs have started, in this process or in another. */
export interface Starts {
  /** Seconds are counted from this moment on. */
  begin(moment: number): void;
  readonly started: number;
  /** Resolves when so many jobs have started. */
  reached(count: number): Promise<void>;
  account(submitted: number): Promise<Account>;
}

/** Lets those wait who want to hear that so many jobs have started. */
export class Waiters {
  #waiting: { readonly count: number; readonly resolve: () => void }[] = [];
  /** The smallest count that anyone waits for. */
  next = Number.POSITIVE_INFINITY;

  wait(count: number): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push({ count, resolve });
      this.next = Math.min(this.next, count);
    });
  }

  reached(started: number): void {
    const ready = this.#waiting.filter(({ count }) => count <= started);
    this.#waiting = this.#waiting.filter(({ count }) => count > started);
    this.next = Math.min(Number.POSITIVE_INFINITY, ...this.#waiting.map(({ count }) => count));
    for (const { resolve } of ready) resolve();
  }
}

/** Counts the starts of numbered jobs: each must start exactly once. */
export class Ledger implements Starts {
  started = 0;
  #begin = now();
  #counts = new Uint8Array(1 << 16);
  #doubled = 0;
  readonly #perSecond: number[] = [];
  readonly #waiters = new Waiters();

  begin(moment: number): void {
    this.#begin = moment;
  }

  start(number: number): void {
    if (number >= this.#counts.length) this.#grow(number);
    if (this.#counts[number] === 1) this.#doubled += 1;
    this.#counts[number] = 1;
    this.started += 1;
    const second = Math.max(0, Math.floor((now() - this.#begin) / 1_000));
    this.#perSecond[second] = (this.#perSecond[second] ?? 0) + 1;
    if (this.started >= this.#waiters.next) this.#waiters.reached(this.started);
  }

  async reached(count: number): Promise<void> {
    if (this.started < count) await this.#waiters.wait(count);
  }

  async account(submitted: number): Promise<Account> {
    let missing = 0;
    for (let number = 0; number < submitted; number++) if (this.#counts[number] !== 1) missing += 1;
    const { started } = this;
    // A second without any start leaves a hole in the array, which is a zero.
    const perSecond = Array.from(this.#perSecond, (count) => count ?? 0);
    return { started, missing, doubled: this.#doubled, perSecond };
  }

  #grow(number: number): void {
    const larger = new Uint8Array(Math.max(number + 1, this.#counts.length * 2));
    larger.set(this.#counts);
    this.#counts = larger;
  }
}
