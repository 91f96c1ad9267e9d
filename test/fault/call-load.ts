import type { Order } from './history.js';
import type { Load } from './load.js';
import type { Client } from './observers/client.js';
import type { Random } from './random.js';
import { SteadyCalls } from './steady-calls.js';

/** Jobs with http targets that are submitted while faults go on, and what the sink is asked to answer. */

const KEYED_SHARE = 1 / 3;
const CALL_TIMEOUT_MS = 2_000;
/** A receiver that dies before it reports is waited for until then. */
const HANDED_ON_TIMEOUT_MS = 10_000;

type Wish = Omit<Partial<Order>, 'call'> & { readonly call?: Partial<NonNullable<Order['call']>> };

const HANDED_ON: Wish = { timeoutMs: HANDED_ON_TIMEOUT_MS, call: { handsOn: true } };
const ONCE: Wish = { atMostOnce: true, maxAttempts: 1 };

/** What calls are like, and how many of a hundred are so. */
const MIXTURE: readonly [share: number, make: (random: Random) => Wish][] = [
  [33, () => ({})],
  [15, (random) => ({ workMs: random.between(20, 200) })],
  [2, () => ({ workMs: CALL_TIMEOUT_MS * 2, maxAttempts: 2 })],
  [8, (random) => ({ failures: random.between(1, 2), call: { failing: 'error' } })],
  [2, () => ({ failures: 99, maxAttempts: 2, call: { failing: 'error' } })],
  [4, () => ({ failures: 1, call: { failing: 'reset' } })],
  [2, () => ({ failures: 1, call: { failing: 'lost' } })],
  [1, () => ({ failures: 1, call: { failing: 'busy' } })],
  [10, (random) => ({ ...ONCE, workMs: random.between(0, 60) })],
  [2, () => ({ ...ONCE, failures: 1, call: { failing: 'reset' } })],
  [1, () => ({ ...ONCE, failures: 1, call: { failing: 'lost' } })],
  [4, () => HANDED_ON],
  [9, (random) => ({ ...HANDED_ON, workMs: random.between(50, 2_000) })],
  [4, (random) => ({ ...HANDED_ON, failures: 1, workMs: random.between(0, 300) })],
  [3, (random) => ({ ...HANDED_ON, ...ONCE, workMs: random.between(0, 1_000) })],
];

export class CallLoad {
  readonly #calls: SteadyCalls;

  constructor(
    private readonly client: Client,
    private readonly load: Load,
    private readonly random: Random,
    private readonly origins: readonly string[],
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
    const wish = callOrder(this.random.weighted(MIXTURE)(this.random), this.origins, this.random);
    const keyed = this.random.next() < KEYED_SHARE;
    return this.client.submit(this.load.make([wish], keyed), signal);
  }
}

/** An order that calls the sink. */
function callOrder(wish: Wish, origins: readonly string[], random: Random): Partial<Order> {
  const [busy, ...others] = origins as [string, ...string[]];
  const call = { failing: 'error', handsOn: false, timeoutMs: CALL_TIMEOUT_MS, ...wish.call } as const;
  // An answer 429 pauses its whole origin, so such calls have one for themselves.
  return { ...wish, call: { ...call, origin: call.failing === 'busy' ? busy : random.pick(others) } };
}
