import type { Order } from './history.js';
import type { Load } from './load.js';
import type { Client } from './observers/client.js';
import type { Random } from './random.js';
import { SteadyCalls } from './steady-calls.js';

/** Jobs that run a program, submitted while faults go on. */

const KEYED_SHARE = 1 / 3;
const ONCE: Partial<Order> = { atMostOnce: true, maxAttempts: 1 };

/** What programs are like, and how many of a hundred are so. */
const MIXTURE: readonly [share: number, make: (random: Random) => Partial<Order>][] = [
  [40, () => ({})],
  [20, (random) => ({ workMs: random.between(20, 400) })],
  [8, (random) => ({ workMs: random.between(1_000, 4_000) })],
  [10, (random) => ({ failures: random.between(1, 2) })],
  [2, () => ({ failures: 99, maxAttempts: 2 })],
  [15, (random) => ({ ...ONCE, workMs: random.between(0, 500) })],
  [5, () => ({ workMs: 4_000, timeoutMs: 500, maxAttempts: 2 })],
];

/** Submits jobs that run a program, at a steady rate. */
export class ProgramLoad {
  readonly #calls: SteadyCalls;

  constructor(
    private readonly client: Client,
    private readonly load: Load,
    private readonly random: Random,
    /** Where the program writes its effects. */
    private readonly folder: string,
    perSecond: number,
    isTooMuch: () => boolean,
  ) {
    this.#calls = new SteadyCalls(perSecond, (signal) => this.#submit(signal), isTooMuch);
  }

  start(): void {
    this.#calls.start();
  }

  stop(): Promise<void> {
    return this.#calls.stop();
  }

  #submit(signal: AbortSignal): Promise<unknown> {
    const wish = { ...this.random.weighted(MIXTURE)(this.random), program: { folder: this.folder } };
    return this.client.submit(this.load.make([wish], this.random.next() < KEYED_SHARE), signal);
  }
}
