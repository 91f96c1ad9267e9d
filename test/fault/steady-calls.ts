import { setTimeout as sleep } from 'node:timers/promises';
import { monotonic } from './monotonic.js';

const EVERY_MS = 50;

/** Makes calls at a steady rate, whatever becomes of them, until it is stopped. */
export class SteadyCalls {
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #stopped = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(
    private readonly perSecond: number,
    private readonly call: (signal: AbortSignal) => Promise<unknown>,
    /** Whether no call is made for now. */
    private readonly isTooMuch: () => boolean,
  ) {}

  start(): void {
    this.#running = this.#run();
  }

  /** Makes no more calls; resolves when those that were made have come to their end. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    await Promise.all(this.#underWay);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopped;
    let last = monotonic();
    let due = 0;
    while (!signal.aborted) {
      const passed = monotonic() - last;
      last += passed;
      if (!this.isTooMuch()) due += (passed / 1_000) * this.perSecond;
      // After a standstill of this very process the calls go on at their rate instead of making up for it.
      const count = Math.min(Math.floor(due), Math.ceil(this.perSecond));
      due = Math.min(due - count, 1);
      for (let made = 0; made < count; made += 1) {
        const call: Promise<unknown> = this.call(signal).finally(() => this.#underWay.delete(call));
        this.#underWay.add(call);
      }
      await sleep(EVERY_MS);
    }
  }
}
