import { type IncomingMessage, request } from 'node:http';
import type { PunctualEvent } from '../src/core/events.js';

/** A message of a stream as it came over the wire. */
export interface Heard {
  readonly id: string;
  readonly event: string;
  readonly data: PunctualEvent & { readonly reason?: string; readonly resumed?: boolean };
}

export interface ListenOptions {
  readonly url: string;
  readonly apiKey?: string;
  /** Of a session, in place of a key. */
  readonly cookie?: string;
  readonly tenant?: string;
  readonly query?: string;
  readonly lastEventId?: string;
}

/** Somebody who listens to events over HTTP, and notes what comes. */
export class EventListener {
  readonly heard: Heard[] = [];
  /** Everything that came, as it came. */
  text = '';
  /** How the stream ended: by the server in order, or broken off. */
  readonly ended: Promise<'ended' | 'broken'>;
  #onHeard: () => void = () => undefined;

  private constructor(readonly response: IncomingMessage) {
    response.setEncoding('utf8').on('data', (piece: string) => this.#read(piece));
    this.ended = new Promise((resolve) => {
      response.once('end', () => resolve('ended'));
      response.once('error', () => resolve('broken'));
    });
    void this.ended.then(() => this.#onHeard());
  }

  /** Resolves when the answer has begun; rejects with its body if it is refused. */
  static open({
    url,
    apiKey,
    cookie,
    tenant,
    query = '',
    lastEventId,
  }: ListenOptions): Promise<EventListener> {
    const headers = {
      ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
      ...(cookie !== undefined && { cookie }),
      ...(tenant !== undefined && { 'punctual-tenant': tenant }),
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
    };
    return new Promise((resolve, reject) => {
      const asked = request(`${url}/v1/events${query}`, { headers, agent: false }, (response) => {
        if (response.statusCode === 200) return resolve(new EventListener(response));
        let text = '';
        response.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
        });
        response.on('end', () => reject(new Error(`${response.statusCode}: ${text}`)));
      });
      asked.on('error', reject).end();
    });
  }

  /** The newest id. */
  get lastId(): string {
    return this.heard.at(-1)!.id;
  }

  /** The types that came so far. */
  get types(): string[] {
    return this.heard.map(({ event }) => event);
  }

  /** Waits until a message came for which this is true. */
  async until(isIt: (heard: Heard) => boolean): Promise<Heard> {
    let isOver = false;
    void this.ended.then(() => {
      isOver = true;
    });
    for (;;) {
      const found = this.heard.find(isIt);
      if (found) return found;
      if (isOver) throw new Error(`the stream ended after ${this.types.join(', ') || 'nothing'}`);
      await new Promise<void>((resolve) => {
        this.#onHeard = resolve;
      });
    }
  }

  /** Waits for an event of this type, about this job if one is named. */
  event(type: string, job?: string): Promise<Heard> {
    return this.until(({ event, data }) => event === type && (job === undefined || data.job === job));
  }

  /** Leaves. */
  close(): void {
    this.response.destroy();
  }

  #rest = '';

  #read(piece: string): void {
    this.text += piece;
    const blocks = (this.#rest + piece).split('\n\n');
    this.#rest = blocks.pop()!;
    for (const block of blocks) {
      const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(block)?.[1] ?? '';
      if (field('event') === '') continue;
      this.heard.push({ id: field('id'), event: field('event'), data: JSON.parse(field('data')) });
    }
    this.#onHeard();
  }
}
