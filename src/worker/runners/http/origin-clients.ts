import { InLine, WaitingLine } from './waiting-line.js';

/** Origins that nothing has called for so long are forgotten. */
const FORGET_AFTER_MS = 10_000;
/** What follows it runs when the code that runs now has returned; `queueMicrotask` makes an object for the hooks of Node as well. */
const SOON = Promise.resolve();

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
  readonly openedAt: number;
  readonly origin: Origin<C>;
}

/** A call that wants a place. */
export abstract class Visitor<C> extends InLine<Visitor<C>> {
  /** Called if it has to wait: its turn then comes from within the end of another call. */
  onWait(): void {}

  /** Called once, with a place that must be given back. It must not throw. */
  abstract onTurn(place: Place<C>): void;

  /** Called in place of the turn, if there can be none. */
  abstract giveUp(reason: unknown): void;
}

/** What is known of an origin while it is called. */
interface Origin<C> {
  readonly name: string;
  inside: number;
  /** Those without a call; the last one was used last, and its connection is the likeliest to be open. */
  readonly free: Place<C>[];
  readonly waiting: WaitingLine<Visitor<C>>;
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

  /** Gives the visitor a place among the calls to an origin, now or when it is its turn. */
  enter(name: string, visitor: Visitor<C>): void {
    const origin = this.#find(name);
    if (origin.inside < this.#options.most) {
      origin.inside += 1;
      this.#giveTurn(origin, visitor);
      return;
    }
    visitor.onWait();
    origin.waiting.join(visitor);
  }

  /** Lets a visitor go that waits no longer. */
  leaveLine(visitor: Visitor<C>): void {
    visitor.line?.leave(visitor);
  }

  /** Takes a place back, once; it passes to whoever has waited longest. */
  giveBack(place: Place<C>): void {
    const { origin } = place;
    if (place.client.destroyed) this.#all.delete(place.client);
    else origin.free.push(place);
    origin.usedAt = this.#options.now();
    const next = origin.waiting.next();
    if (!next) origin.inside -= 1;
    // Not from within the end of another call, which its client has not done with yet.
    else void SOON.then(() => this.#giveTurn(origin, next));
  }

  #giveTurn(origin: Origin<C>, visitor: Visitor<C>): void {
    let place: Place<C>;
    try {
      place = this.#placeAt(origin);
    } catch (error) {
      origin.inside -= 1;
      visitor.giveUp(error);
      return;
    }
    visitor.onTurn(place);
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
    const origin: Origin<C> = { name, inside: 0, free: [], waiting: new WaitingLine(), usedAt };
    this.#origins.set(name, origin);
    this.#sweepLater();
    return origin;
  }

  #placeAt(origin: Origin<C>): Place<C> {
    const { now, ttlMs, open } = this.#options;
    const openedAt = now();
    for (let place = origin.free.pop(); place; place = origin.free.pop()) {
      if (openedAt - place.openedAt < ttlMs) return place;
      this.#end(place);
    }
    const client = open(origin.name);
    this.#all.add(client);
    return { client, openedAt, origin };
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
      for (const place of free) this.#end(place);
      this.#origins.delete(name);
    }
    if (this.#origins.size > 0) this.#sweepLater();
  }

  #end({ client }: Place<C>): void {
    this.#all.delete(client);
    client.end();
  }
}
