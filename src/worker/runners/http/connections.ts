import { Client, type Dispatcher } from 'undici';
import { monotonic } from '../../worker-clock.js';
import { AnswerReader, type BodyLimit, type CallAnswer } from './answer-reader.js';
import type { CallDeadline } from './call-deadline.js';
import type { CallRequest } from './call-request.js';
import type { Dial } from './connector.js';
import { OriginClients } from './origin-clients.js';

/** The most calls of this worker to one origin at a time. */
const MOST_PER_ORIGIN = 256;
/** How long a connection is used: a kept one would go to the old address for ever when a name gets another one. */
const CONNECTION_TTL_MS = 60_000;

/**
 * The connections of calls. They are kept for a while, so that many calls to one origin need few; proxies from the environment
 * are ignored. A call that must be made at most once gets a connection of its own: on a kept one, undici could not tell a request
 * that never left from one that was lost on the way.
 */
export class Connections {
  readonly #clients: OriginClients;
  readonly #open: (origin: string) => Client;

  constructor(connect: Dial, ttlMs = CONNECTION_TTL_MS) {
    // The deadline of the call is the only one.
    const settings = { connect, headersTimeout: 0, bodyTimeout: 0, pipelining: 1, allowH2: false };
    this.#open = (origin) => new Client(origin, settings);
    const now = () => monotonic.now();
    this.#clients = new OriginClients({ open: this.#open, most: MOST_PER_ORIGIN, ttlMs, now });
  }

  /** Sends a request, and answers with what is wanted of the answer. */
  async send(
    request: CallRequest,
    isFresh: boolean,
    deadline: CallDeadline,
    limitOf: BodyLimit,
  ): Promise<CallAnswer> {
    const { url } = request;
    deadline.phase = 'turn';
    const place = await this.#clients.enter(url.origin, deadline);
    if (deadline.isEnded) {
      place.giveBack();
      throw deadline.reason;
    }
    deadline.phase = 'answer';
    const own = isFresh ? this.#open(url.origin) : null;
    return new Promise((onAnswer, onFailure) => {
      // A call that is connecting keeps its place until the connection stands or has failed.
      const onOver = () => {
        place.giveBack();
        own?.destroy().catch(() => undefined);
      };
      const reader = new AnswerReader(limitOf, { onAnswer, onFailure, onOver });
      const options = {
        path: url.pathname + url.search,
        method: request.method as Dispatcher.HttpMethod,
        headers: request.headers,
        body: request.body,
        reset: isFresh,
      };
      (own ?? place.client).dispatch(options, reader);
      deadline.listen((reason) => reader.giveUp(reason));
    });
  }

  close(): Promise<void> {
    return this.#clients.close();
  }
}
