import { randomUUID } from 'node:crypto';
import { Agent, type Dispatcher } from 'undici';
import { entryOf, type RingEntry } from '../core/event-ring.js';
import type { EventReceiver, EventSource } from '../core/event-source.js';
import { SHARD_HEADER } from '../core/wire.js';
import type { PeerCaller } from './peer-caller.js';

const TIMEOUT_MS = 2_000;
/** How often the leader shows that a subscription lives. */
export const EVENTS_HEARTBEAT_MS = 2_000;
/** After this silence the leader counts as lost. */
const SILENCE_MS = 3 * EVENTS_HEARTBEAT_MS;

/** How to reach the leader, and who is told of its events. */
interface LeaderEventsOptions {
  readonly shard: number;
  readonly url: string;
  /** Aborts when this node learns that the leader's term is over. */
  readonly termOver: AbortSignal;
  /** How nodes authenticate to each other, and whom they trust. */
  readonly peers: Pick<PeerCaller, 'token' | 'trust'>;
  readonly receiver: EventReceiver;
}

/**
 * The one subscription of this node to the events of a shard, with its leader on another node: a streamed response, which
 * lasts until either side closes it. Separate calls say which rings are wanted. It does not share the connection of
 * `LeaderEnds`: megabytes of events must not delay the news that a job has ended.
 */
export class LeaderEvents implements EventSource {
  private readonly agent: Agent;
  private readonly path = `/internal/events/${randomUUID()}`;
  private readonly controller = new AbortController();
  /** The last line of the stream, as far as it has arrived. */
  private rest = '';

  private constructor(private readonly options: LeaderEventsOptions) {
    this.agent = new Agent({ connections: 2, connect: options.peers.trust.connect(TIMEOUT_MS) });
  }

  /** Opens a subscription without rings. */
  static async open(options: LeaderEventsOptions): Promise<LeaderEvents> {
    const events = new LeaderEvents(options);
    try {
      await events.begin();
      return events;
    } catch (error) {
      events.close();
      throw error;
    }
  }

  /** Aborts when the subscription is closed, by whichever side. */
  get over(): AbortSignal {
    return this.controller.signal;
  }

  async change(add: readonly string[], remove: readonly string[]): Promise<void> {
    try {
      const answer = await this.ask('POST', JSON.stringify({ add, remove }));
      await answer.body.dump();
      if (answer.statusCode !== 204) throw new Error(`the leader answered ${answer.statusCode}`);
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
    const { termOver } = this.options;
    termOver.throwIfAborted();
    termOver.addEventListener('abort', this.close, { once: true });
    const answer = await this.ask('GET');
    if (answer.statusCode !== 200) throw new Error(`the leader answered ${answer.statusCode}`);
    answer.body.setEncoding('utf8').on('data', (text: string) => this.read(text));
    for (const event of ['end', 'error', 'close']) answer.body.on(event, this.close);
  }

  private read(text: string): void {
    if (this.over.aborted) return;
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop()!;
    try {
      this.receive(lines);
    } catch {
      // This is not the answer of a leader: close, and subscribe anew.
      this.close();
    }
  }

  /** Events of one ring that come together are passed on together. */
  private receive(lines: readonly string[]): void {
    const { receiver } = this.options;
    let name = '';
    let first = 0;
    let entries: RingEntry[] = [];
    const passOn = () => {
      if (entries.length > 0) receiver.receive(name, first, entries);
      entries = [];
    };
    for (const line of lines) {
      const [kind, ring = '', number = '', ...more] = line.split(' ', 5);
      if (kind === 'E') {
        const sequence = Number(number);
        if (ring !== name || sequence !== first + entries.length) passOn();
        if (entries.length === 0) {
          name = ring;
          first = sequence;
        }
        const data = line.slice(4 + ring.length + number.length);
        entries.push(entryOf(data));
        continue;
      }
      passOn();
      if (kind === 'S') receiver.begin(ring, Number(number), Number(more[0]), Number(more[1]));
      else if (kind === 'X') receiver.refuse(ring);
    }
    passOn();
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
      bodyTimeout: SILENCE_MS,
      signal: this.over,
    });
  }
}
