import { Agent, request } from 'undici';
import { messageOf } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { SHARD_HEADER } from '../core/wire.js';
import { PeerTrust } from './peer-trust.js';

const TIMEOUT_MS = 1_000;

/** Short calls from node to node. They only save time: nothing depends on their arrival. */
export class PeerCaller {
  private readonly agent: Agent;

  constructor(
    private readonly log: Log,
    /** The credential by which nodes authenticate to each other. */
    readonly token: () => string,
    /** Which certificates of nodes are trusted. */
    readonly trust = new PeerTrust(''),
  ) {
    this.agent = new Agent({ connections: 2, connect: trust.connect(TIMEOUT_MS) });
  }

  /** Posts to a node, about a shard if one is given; answers whether it was accepted. */
  async post(url: string, path: string, body: object, shard?: number): Promise<boolean> {
    try {
      const answer = await request(new URL(path, url), {
        method: 'POST',
        headers: {
          authorization: `Bearer ${this.token()}`,
          'content-type': 'application/json',
          ...(shard !== undefined && { [SHARD_HEADER]: String(shard) }),
        },
        body: JSON.stringify(body),
        dispatcher: this.agent,
        headersTimeout: TIMEOUT_MS,
        bodyTimeout: TIMEOUT_MS,
      });
      await answer.body.dump();
      return answer.statusCode < 300;
    } catch (error) {
      this.log.debug({ url, path, error: messageOf(error) }, 'another node could not be called');
      return false;
    }
  }

  /** Asks a node for something, about a shard; null if there is no answer in time. */
  get(url: string, path: string, shard: number): Promise<unknown> {
    return this.answerOf(url, path, shard, {});
  }

  /** The same with something to say. */
  ask(url: string, path: string, body: object, shard: number): Promise<unknown> {
    return this.answerOf(url, path, shard, { method: 'POST', body: JSON.stringify(body) });
  }

  private async answerOf(
    url: string,
    path: string,
    shard: number,
    said: { readonly method?: 'POST'; readonly body?: string },
  ): Promise<unknown> {
    try {
      const answer = await request(new URL(path, url), {
        ...said,
        headers: {
          authorization: `Bearer ${this.token()}`,
          [SHARD_HEADER]: String(shard),
          ...(said.body !== undefined && { 'content-type': 'application/json' }),
        },
        dispatcher: this.agent,
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      if (answer.statusCode === 200) return await answer.body.json();
      await answer.body.dump();
      return null;
    } catch (error) {
      this.log.debug({ url, path, error: messageOf(error) }, 'another node could not be asked');
      return null;
    }
  }

  async close(): Promise<void> {
    await this.agent.destroy();
  }
}
