import { randomUUID } from 'node:crypto';
import { Agent, type Dispatcher } from 'undici';
import { SHARD_HEADER } from '../core/wire.js';
import { LeaderElsewhere } from './leader-elsewhere.js';
import type { PeerCaller } from './peer-caller.js';

const TIMEOUT_MS = 2_000;

/** How to reach the leader, and what to call when jobs end. */
interface LeaderEndsOptions {
  readonly shard: number;
  readonly url: string;
  /** Aborts when this node learns that the leader's term is over. */
  readonly termOver: AbortSignal;
  /** How nodes authenticate to each other, and whom they trust. */
  readonly peers: Pick<PeerCaller, 'token' | 'trust'>;
  readonly onEnded: (ids: readonly string[]) => void;
}

/**
 * A subscription to the ends of a shard's jobs, with its leader on another node. It is one streamed response, which lasts until
 * either side closes it. Separate calls add jobs to the subscription and remove them. Each call is confirmed on the
 * stream, so that a dead stream is noticed.
 */
export class LeaderEnds {
  private readonly agent: Agent;
  private readonly path = `/internal/ends/${randomUUID()}`;
  private readonly controller = new AbortController();
  private readonly confirmations = new Map<number, () => void>();
  private changes = 0;
  /** The last line of the stream, as far as it has arrived. */
  private rest = '';

  private constructor(private readonly options: LeaderEndsOptions) {
    this.agent = new Agent({ connections: 2, connect: options.peers.trust.connect(TIMEOUT_MS) });
  }

  /** Opens a subscription without jobs. */
  static async open(options: LeaderEndsOptions): Promise<LeaderEnds> {
    const ends = new LeaderEnds(options);
    try {
      await ends.begin();
      return ends;
    } catch (error) {
      ends.close();
      throw error;
    }
  }

  /** Aborts when the subscription is closed, by whichever side. */
  get over(): AbortSignal {
    return this.controller.signal;
  }

  /** Adds and removes jobs; resolves when the leader has confirmed it on the stream. */
  async change(add: readonly string[], remove: readonly string[]): Promise<void> {
    const change = ++this.changes;
    const confirmed = this.confirmation(change);
    // It may reject while the call is still awaited; that must not count as an unhandled rejection.
    confirmed.catch(() => undefined);
    try {
      const answer = await this.ask('POST', JSON.stringify({ change, add, remove }));
      await answer.body.dump();
      if (answer.statusCode !== 204) throw new Error(`the leader answered ${answer.statusCode}`);
      await confirmed;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  readonly close = (): void => {
    if (this.over.aborted) return;
    this.options.termOver.removeEventListener('abort', this.close);
    this.controller.abort();
    void this.agent.destroy();
  };

  private async begin(): Promise<void> {
    const { termOver, shard, url } = this.options;
    termOver.throwIfAborted();
    termOver.addEventListener('abort', this.close, { once: true });
    const answer = await this.ask('GET');
    // A leader of an older version has no such route: requests that wait are forwarded to it.
    if (answer.statusCode === 404) throw new LeaderElsewhere(shard, url);
    if (answer.statusCode !== 200) throw new Error(`the leader answered ${answer.statusCode}`);
    answer.body.setEncoding('utf8').on('data', (text: string) => this.read(text));
    for (const event of ['end', 'error', 'close']) answer.body.on(event, this.close);
  }

  private read(text: string): void {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop()!;
    try {
      for (const line of lines) this.receive(JSON.parse(line) as number | string[]);
    } catch {
      // This is not the answer of a leader: close, so that those who wait subscribe anew.
      this.close();
    }
  }

  /** A number confirms a change; a list names jobs that have ended. */
  private receive(message: number | string[]): void {
    if (typeof message === 'number') this.confirmations.get(message)?.();
    else this.options.onEnded(message);
  }

  private confirmation(change: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (end: () => void) => {
        clearTimeout(timer);
        this.confirmations.delete(change);
        this.over.removeEventListener('abort', failed);
        end();
      };
      const failed = () => settle(() => reject(new Error('the leader does not confirm any more')));
      const timer = setTimeout(failed, TIMEOUT_MS);
      this.over.addEventListener('abort', failed, { once: true });
      this.confirmations.set(change, () => settle(resolve));
    });
  }

  private ask(method: 'GET' | 'POST', body?: string): Promise<Dispatcher.ResponseData> {
    return this.agent.request({
      origin: new URL(this.options.url).origin,
      path: this.path,
      method,
      headers: {
        authorization: `Bearer ${this.options.peers.token()}`,
        [SHARD_HEADER]: String(this.options.shard),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: 0,
      signal: this.over,
    });
  }
}
