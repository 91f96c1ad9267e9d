import { Agent, type Dispatcher } from 'undici';
import { SHARD_HEADER } from '../core/wire.js';
import type { PeerCaller } from './peer-caller.js';

const TIMEOUT_MS = 2_000;

/** How to reach the leader of a shard on another node. */
export interface LeaderAddress {
  readonly shard: number;
  readonly url: string;
  /** Aborts when this node learns that the leader's term is over. */
  readonly termOver: AbortSignal;
  /** How nodes authenticate to each other, and whom they trust. */
  readonly peers: Pick<PeerCaller, 'token' | 'trust'>;
}

interface StreamOptions {
  readonly path: string;
  /** After this silence the leader counts as lost; zero for never. */
  readonly silenceMs: number;
  /** Takes whole lines; if it throws, this is not the answer of a leader, and the stream is closed. */
  readonly receive: (lines: readonly string[]) => void;
}

/**
 * A streamed answer of the leader on another node, line by line, until either side closes it. Calls to the same path
 * change what it tells.
 */
export class LeaderStream {
  private readonly agent: Agent;
  private readonly controller = new AbortController();
  /** The last line, as far as it has arrived. */
  private rest = '';

  constructor(
    private readonly leader: LeaderAddress,
    private readonly options: StreamOptions,
  ) {
    this.agent = new Agent({ connections: 2, connect: leader.peers.trust.connect(TIMEOUT_MS) });
  }

  /** Aborts when the stream is closed, by whichever side. */
  get over(): AbortSignal {
    return this.controller.signal;
  }

  /** Opens the stream; answers with the status, and closes it if that is not 200. */
  async open(): Promise<number> {
    const { termOver } = this.leader;
    try {
      termOver.throwIfAborted();
      termOver.addEventListener('abort', this.close, { once: true });
      const answer = await this.ask('GET');
      if (answer.statusCode !== 200) {
        this.close();
        return answer.statusCode;
      }
      answer.body.setEncoding('utf8').on('data', (text: string) => this.read(text));
      for (const event of ['end', 'error', 'close']) answer.body.on(event, this.close);
      return answer.statusCode;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** Changes what the stream tells; closes it when that fails. */
  async change(change: object): Promise<void> {
    try {
      const answer = await this.ask('POST', JSON.stringify(change));
      await answer.body.dump();
      if (answer.statusCode !== 204) throw unexpected(answer.statusCode);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  readonly close = (): void => {
    if (this.over.aborted) return;
    this.leader.termOver.removeEventListener('abort', this.close);
    this.controller.abort();
    void this.agent.destroy();
  };

  private read(text: string): void {
    if (this.over.aborted) return;
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop()!;
    try {
      this.options.receive(lines);
    } catch {
      this.close();
    }
  }

  private ask(method: 'GET' | 'POST', body?: string): Promise<Dispatcher.ResponseData> {
    const { url, shard, peers } = this.leader;
    return this.agent.request({
      origin: new URL(url).origin,
      path: this.options.path,
      method,
      headers: {
        authorization: `Bearer ${peers.token()}`,
        [SHARD_HEADER]: String(shard),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      headersTimeout: TIMEOUT_MS,
      bodyTimeout: this.options.silenceMs,
      signal: this.over,
    });
  }
}

/** The error for an answer that no leader of this version gives. */
export function unexpected(status: number): Error {
  return new Error(`the leader answered ${status}`);
}
