import type { CallDeadline } from './call-deadline.js';

/** Origins that nothing has called for so long are forgotten. */
const FORGET_AFTER_MS = 10_000;

/** What is kept for the next call to an origin. */
export interface OriginClient {
  /** Whether it was ended, and is of no use any more. */
  readonly destroyed: boolean;
  /** Ends it at once, with what is under way. */
  end(): void;
}

interface OriginClientsOptions<C> {
  readonly open: (origin: string) => C;
  /** The most calls to one origin at a time. */
  readonly most: number;
  /** How long a client is used. */
  readonly ttlMs: number;
  /** Monotonic, in milliseconds. */
  readonly now: () => number;
}

/** A client that has no other call, until it is given back. */
export interface Place<C> {
  readonly client: C;
  giveBack(): void;
}

interface KeptClient<C> {
  readonly client: C;
  readonly openedAt: number;
}

interface Origin<C> {
  inside: number;
  /** Those without a call; the last one was used last, and its connection is the likeliest to be open. */
  readonly free: KeptClient<C>[];
  /** Calls that wait for a place, in the order of arrival. */
  readonly waiting: Set<() => void>;
  usedAt: number;
}

/**
 * The clients of all origins. It bounds the calls to one origin at a time, because undici does not let go of what waits in its own
 * queue when the time of a call is up; so nothing ever waits there. It is no pool of undici because that looks at every one of
 * its connections for each call.
 */
export class OriginClients<C extends OriginClient> {
  readonly #options: OriginClientsOptions<C>;
  readonly #origins = new Map<string, Origin<C>>();
  readonly #all = new Set<C>();
  #sweeping: NodeJS.Timeout | undefined;

  constructor(options: OriginClientsOptions<C>) {
    this.#options = options;
  }

  /** Waits for a place among the calls to an origin; rejects when the call must end. */
  async enter(name: string, deadline: CallDeadline): Promise<Place<C>> {
    const origin = this.#find(name);
    if (origin.inside < this.#options.most) origin.inside += 1;
    else await turnIn(origin, deadline);
    const kept = this.#clientOf(origin, name);
    let isInside = true;
    const giveBack = () => {
      if (isInside) this.#leave(origin, kept);
      isInside = false;
    };
    return { client: kept.client, giveBack };
  }

  /** Ends what is under way, too. */
  close(): void {
    clearTimeout(this.#sweeping);
    for (const client of this.#all) client.end();
  }

  #find(name: string): Origin<C> {
    const known = this.#origins.get(name);
    if (known) return known;
    const usedAt = this.#options.now();
    const origin: Origin<C> = { inside: 0, free: [], waiting: new Set(), usedAt };
    this.#origins.set(name, origin);
    this.#sweepLater();
    return origin;
  }

  #clientOf(origin: Origin<C>, name: string): KeptClient<C> {
    const { now, ttlMs, open } = this.#options;
    const at = now();
    for (let kept = origin.free.pop(); kept; kept = origin.free.pop()) {
      if (at - kept.openedAt < ttlMs) return kept;
      this.#end(kept);
    }
    const client = open(name);
    this.#all.add(client);
    return { client, openedAt: at };
  }

  #leave(origin: Origin<C>, kept: KeptClient<C>): void {
    if (kept.client.destroyed) this.#all.delete(kept.client);
    else origin.free.push(kept);
    origin.usedAt = this.#options.now();
    const [next] = origin.waiting;
    // The place passes to whoever has waited longest.
    if (next) {
      origin.waiting.delete(next);
      next();
    } else origin.inside -= 1;
  }

  /** Runs only while there are origins to forget. */
  #sweepLater(): void {
    this.#sweeping ??= setTimeout(() => this.#sweep(), FORGET_AFTER_MS).unref();
  }

  #sweep(): void {
    this.#sweeping = undefined;
    const before = this.#options.now() - FORGET_AFTER_MS;
    for (const [name, { inside, free, usedAt }] of this.#origins) {
      if (inside > 0 || usedAt > before) continue;
      for (const kept of free) this.#end(kept);
      this.#origins.delete(name);
    }
    if (this.#origins.size > 0) this.#sweepLater();
  }

  #end({ client }: KeptClient<C>): void {
    this.#all.delete(client);
    client.end();
  }
}

function turnIn<C>(origin: Origin<C>, deadline: CallDeadline): Promise<void> {
  return new Promise((resolve, reject) => {
    origin.waiting.add(resolve);
    deadline.listen((reason) => {
      // Whoever was given a place just now goes on, and gives it back.
      if (origin.waiting.delete(resolve)) reject(reason);
    });
  });
}
