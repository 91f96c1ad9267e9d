import { Client, type Dispatcher } from 'undici';
import { monotonic } from '../../worker-clock.js';
import { AnswerReader, type BodyLimit, type CallAnswer } from './answer-reader.js';
import type { CallDeadline } from './call-deadline.js';
import type { CallRequest } from './call-request.js';
import type { Connect } from './connector.js';
import { OriginClients } from './origin-clients.js';

/** The most calls of this worker to one origin at a time. */
const MOST_PER_ORIGIN = 256;
/** How long a connection is used: a kept one would go to the old address for ever when a name gets another one. */
const CONNECTION_TTL_MS = 60_000;

// The deadline of the call is the only one.
const SETTINGS = { headersTimeout: 0, bodyTimeout: 0, pipelining: 1, allowH2: false } as const;

/** A client whose connecting ends with it; by itself, undici would go on until it has failed. */
class CallClient extends Client {
  readonly #over: AbortController;

  constructor(origin: string, connect: Connect) {
    const over = new AbortController();
    super(origin, {
      ...SETTINGS,
      connect: (options, callback) => connect(options, callback, over.signal),
    });
    this.#over = over;
  }

  /** Ends it at once, with what is under way. */
  end(): void {
    this.#over.abort(new Error('The connection is not needed any more.'));
    this.destroy().catch(() => undefined);
  }
}

/**
 * The connections of calls. They are kept for a while, so that many calls to one origin need few; proxies from the environment
 * are ignored. A call that must be made at most once gets a connection of its own: on a kept one, undici could not tell a request
 * that never left from one that was lost on the way.
 */
export class Connections {
  readonly #clients: OriginClients<CallClient>;
  readonly #open: (origin: string) => CallClient;

  constructor(connect: Connect, ttlMs = CONNECTION_TTL_MS) {
    this.#open = (origin) => new CallClient(origin, connect);
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
    const client = own ?? place.client;
    return new Promise((onAnswer, onFailure) => {
      const onOver = () => {
        place.giveBack();
        own?.end();
      };
      // Nobody waits for its connection, which may take long or never stand.
      const onUnsent = () => client.end();
      const reader = new AnswerReader(limitOf, { onAnswer, onFailure, onUnsent, onOver });
      const options = {
        path: url.pathname + url.search,
        method: request.method as Dispatcher.HttpMethod,
        headers: request.headers,
        body: request.body,
        reset: isFresh,
      };
      client.dispatch(options, reader);
      deadline.listen((reason) => reader.giveUp(reason));
    });
  }

  close(): void {
    this.#clients.close();
  }
}
