import { setTimeout as sleep } from 'node:timers/promises';
import type { Order, Submission } from './history.js';
import { monotonic } from './monotonic.js';
import type { Client, Way } from './observers/client.js';
import type { Random } from './random.js';

const EVERY_MS = 100;
const PLAIN: Omit<Order, 'n'> = {
  ...{ workMs: 0, failures: 0, blocking: false, maxAttempts: 4, atMostOnce: false },
  ...{ timeoutMs: 60_000, delayMs: 0, key: null },
  ...{ tenant: 'default', queue: 'default', requires: {}, servable: true, bytes: 0, partOf: null },
  ...{ call: null, program: null },
};

/** What jobs are like, and how many of a hundred are so. */
const MIXTURE: readonly [share: number, make: (random: Random) => Partial<Order>][] = [
  [54, () => ({})],
  [15, (random) => ({ workMs: random.between(20, 150) })],
  [4, (random) => ({ workMs: random.between(500, 2_500) })],
  [8, (random) => ({ failures: random.between(1, 2) })],
  [2, () => ({ failures: 99, maxAttempts: 2 })],
  [10, (random) => ({ atMostOnce: true, maxAttempts: 1, workMs: random.between(0, 60) })],
  [6, (random) => ({ delayMs: random.between(500, 6_000) })],
  [1, () => ({ workMs: 3_000, timeoutMs: 400, maxAttempts: 2 })],
];

/**
 * Submits jobs of all kinds at a steady rate, whatever happens on the other side. Only when much more waits than the
 * faults can explain does it hold back, as clients do that are told of a queue's depth: a backlog that grows without end
 * would test nothing but patience.
 */
export class Load {
  #n = 0;
  readonly #underWay = new Set<Promise<unknown>>();
  readonly #stopped = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #heldBackMs = 0;

  constructor(
    private readonly client: Client,
    private readonly random: Random,
    private readonly jobsPerSecond: number,
    /** Whether so much waits that nothing more should be ordered for now. */
    private readonly isTooMuch: () => boolean,
  ) {}

  /** Jobs ordered so far. */
  get ordered(): number {
    return this.#n;
  }

  /** How long it has ordered nothing because too much waited. */
  get heldBackMs(): number {
    return this.#heldBackMs;
  }

  start(): void {
    this.#running = this.#run();
  }

  /** Orders nothing more; resolves when every submission has come to its end. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    await Promise.all(this.#underWay);
  }

  /** Orders on top of the load, in one request, for a fault that needs jobs of a certain kind. */
  order(wishes: readonly Partial<Order>[], way?: Way): Promise<Submission> {
    return this.client.submit(this.make(wishes), this.#stopped.signal, way);
  }

  /** Orders for whoever submits them in a way of its own. */
  make(wishes: readonly Partial<Order>[], keyed = true): Order[] {
    return wishes.map((wish) => this.#make(wish, keyed));
  }

  async #run(): Promise<void> {
    let last = monotonic();
    let due = 0;
    while (!this.#stopped.signal.aborted) {
      const passed = monotonic() - last;
      last += passed;
      if (this.isTooMuch()) this.#heldBackMs += passed;
      else due += (passed / 1_000) * this.jobsPerSecond;
      // One request of three carries keys, so that it may be repeated until it is answered.
      const keyed = this.random.next() < 1 / 3;
      // After a standstill of this very process the load goes on at its rate instead of making up for it.
      const count = Math.min(Math.floor(due), this.jobsPerSecond);
      due = Math.min(due - count, 1);
      const orders = Array.from({ length: count }, () =>
        this.#make(this.random.weighted(MIXTURE)(this.random), keyed),
      );
      if (orders.length > 0) this.#submit(orders);
      await sleep(EVERY_MS);
    }
  }

  #submit(orders: readonly Order[]): void {
    const submission: Promise<unknown> = this.client
      .submit(orders, this.#stopped.signal)
      .finally(() => this.#underWay.delete(submission));
    this.#underWay.add(submission);
  }

  #make(wish: Partial<Order>, keyed: boolean): Order {
    this.#n += 1;
    return { ...PLAIN, ...wish, n: this.#n, key: keyed ? `order-${this.#n}` : null };
  }
}
