import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * How a link behaves. `cut` ends connections and refuses new ones; the others keep connections and hold bytes
 * back, as a network does that loses packets: what was held arrives when the link heals, however late.
 */
export type LinkState =
  | { readonly kind: 'open' }
  | { readonly kind: 'cut' }
  /** Nothing passes in either direction, and nobody is told. */
  | { readonly kind: 'half-open' }
  /** Requests pass, answers do not. */
  | { readonly kind: 'deaf' }
  /** Answers pass, requests do not. */
  | { readonly kind: 'mute' }
  | { readonly kind: 'slow'; readonly delayMs: number };

/** Looks at what passes; answers with what may go on. */
export interface Tap {
  fromClient(chunk: Buffer): void;
  /** Null swallows the chunk. */
  fromServer(chunk: Buffer): Buffer | null;
}

interface Link {
  readonly client: Socket;
  readonly server: Socket;
}

/** A TCP proxy on a port of its own, in front of one address that may change. */
export class TcpProxy {
  readonly #links = new Set<Link>();
  /** What a slow link has yet to deliver, by receiver. */
  readonly #delayed = new Map<Socket, Buffer[]>();
  readonly #listener: Server;
  #state: LinkState = { kind: 'open' };
  #hits = 0;

  private constructor(
    private readonly target: () => number,
    private readonly openTap: ((end: () => void) => Tap) | undefined,
  ) {
    this.#listener = createServer({ noDelay: true }, (client) => this.#accept(client));
  }

  /** Listens; `target` tells the port behind it each time somebody connects. */
  static async open(target: () => number, openTap?: (end: () => void) => Tap): Promise<TcpProxy> {
    const proxy = new TcpProxy(target, openTap);
    await new Promise<void>((resolve) => proxy.#listener.listen(0, '127.0.0.1', resolve));
    return proxy;
  }

  get port(): number {
    return (this.#listener.address() as AddressInfo).port;
  }

  /** Connections and chunks that the present state has ended, refused or held back. */
  get hits(): number {
    return this.#hits;
  }

  /** Changes how the link behaves from now on, for connections that stand and for new ones. */
  become(state: LinkState): void {
    this.#state = state;
    this.#hits = 0;
    for (const link of this.#links) {
      if (state.kind === 'cut') {
        this.#hits += 1;
        this.#end(link);
      } else {
        link.client.resume();
        link.server.resume();
      }
    }
  }

  async close(): Promise<void> {
    for (const link of this.#links) this.#end(link);
    await new Promise<void>((resolve) => this.#listener.close(() => resolve()));
  }

  #accept(client: Socket): void {
    if (this.#state.kind === 'cut') {
      this.#hits += 1;
      client.on('error', () => undefined);
      client.resetAndDestroy();
      return;
    }
    const server = connect({ host: '127.0.0.1', port: this.target(), noDelay: true });
    const link: Link = { client, server };
    this.#links.add(link);
    const tap = this.openTap?.(() => this.#end(link));
    client.on('data', (chunk) => {
      if (this.#holds(client, chunk, 'mute')) return;
      tap?.fromClient(chunk);
      this.#pass(client, server, chunk);
    });
    server.on('data', (chunk) => {
      if (this.#holds(server, chunk, 'deaf')) return;
      const rest = tap ? tap.fromServer(chunk) : chunk;
      if (rest !== null) this.#pass(server, client, rest);
    });
    for (const socket of [client, server]) {
      socket.on('error', () => this.#end(link));
      socket.on('close', () => this.#end(link));
    }
  }

  /** Keeps a chunk back until the link changes, if that is how the link is. */
  #holds(from: Socket, chunk: Buffer, direction: 'mute' | 'deaf'): boolean {
    const { kind } = this.#state;
    if (kind !== 'half-open' && kind !== direction) return false;
    this.#hits += 1;
    from.pause();
    from.unshift(chunk);
    return true;
  }

  #pass(from: Socket, to: Socket, chunk: Buffer): void {
    const state = this.#state;
    const isSlow = state.kind === 'slow';
    if (isSlow) this.#hits += 1;
    // A link that has become fast again must not deliver this before what is still on its way.
    if (isSlow || this.#delayed.has(to)) this.#delay(to, chunk, isSlow ? state.delayMs : 0);
    else if (!to.write(chunk)) {
      from.pause();
      to.once('drain', () => from.resume());
    }
  }

  #delay(to: Socket, chunk: Buffer, delayMs: number): void {
    const waiting = this.#delayed.get(to) ?? [];
    waiting.push(chunk);
    this.#delayed.set(to, waiting);
    setTimeout(() => {
      to.write(waiting.shift()!);
      if (waiting.length === 0) this.#delayed.delete(to);
    }, delayMs);
  }

  #end(link: Link): void {
    if (!this.#links.delete(link)) return;
    link.client.destroy();
    link.server.destroy();
  }
}
