import { AsyncResource } from 'node:async_hooks';
import { Client, type Dispatcher } from 'undici';
import { monotonic } from '../../worker-clock.js';
import { type AnswerListener, AnswerReader, type CallAnswer } from './answer-reader.js';
import type { CallDeadline } from './call-deadline.js';
import type { CallRequest } from './call-request.js';
import type { Connect } from './connector.js';
import { OriginClients, type Place, Visitor } from './origin-clients.js';

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

/** What is sent when its turn comes, and how much of the answer is wanted. */
export interface Sending {
  readonly origin: string;
  /** Whether it must have a connection of its own. */
  readonly isFresh: boolean;
  readonly deadline: CallDeadline;
  /** Made at its turn: until then a call needs no memory for it, and a signature does not grow old. */
  request(): CallRequest;
  /** The most bytes of the body that are wanted; null if the answer is complete without it. */
  limitOf(statusCode: number, headers: CallAnswer['headers']): number | null;
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
  send(sending: Sending): Promise<CallAnswer> {
    const { deadline, origin } = sending;
    deadline.phase = 'turn';
    return new Promise((onAnswer, onFailure) => {
      const exchange = new Exchange(sending, this.#clients, this.#open, onAnswer, onFailure);
      this.#clients.enter(origin, exchange);
      deadline.listen((reason) => exchange.giveUp(reason));
    });
  }

  close(): void {
    this.#clients.close();
  }
}

/** A request and its answer, from the wait for its turn until its connection has nothing to do with it any more. */
class Exchange extends Visitor<CallClient> implements AnswerListener {
  #place: Place<CallClient> | null = null;
  /** Set if the call has a client of its own. */
  #own: CallClient | null = null;
  #reader: AnswerReader | null = null;
  /** Set if it waits: what listens to requests, such as a tracer, must find it in its own context, and not in another call's. */
  #context: AsyncResource | null = null;

  constructor(
    private readonly sending: Sending,
    private readonly clients: OriginClients<CallClient>,
    private readonly open: (origin: string) => CallClient,
    readonly onAnswer: (answer: CallAnswer) => void,
    readonly onFailure: (reason: unknown) => void,
  ) {
    super();
  }

  override onWait(): void {
    this.#context = new AsyncResource('punctual call', { requireManualDestroy: true });
  }

  onTurn(place: Place<CallClient>): void {
    if (this.#context) this.#context.runInAsyncScope(() => this.#send(place));
    else this.#send(place);
  }

  #send(place: Place<CallClient>): void {
    this.#place = place;
    const { deadline, isFresh, origin } = this.sending;
    try {
      if (deadline.isEnded) throw deadline.reason;
      const request = this.sending.request();
      deadline.phase = 'answer';
      if (isFresh) this.#own = this.open(origin);
      this.#reader = new AnswerReader(this.sending, this);
      const { address, method, headers, body } = request;
      const { path } = address;
      const options = { path, method: method as Dispatcher.HttpMethod, headers, body, reset: isFresh };
      (this.#own ?? place.client).dispatch(options, this.#reader);
    } catch (error) {
      this.onFailure(error);
      this.onOver();
    }
  }

  /** Tells of a failure at once, and lets go of the turn or the connection as soon as that is possible. */
  giveUp(reason: unknown): void {
    if (this.#reader) {
      this.#reader.giveUp(reason);
      return;
    }
    // Whoever was given a place just now gives it back when its turn comes.
    this.clients.leaveLine(this);
    this.onFailure(reason);
  }

  onUnsent(): void {
    // Nobody waits for its connection, which may take long or never stand.
    (this.#own ?? this.#place?.client)?.end();
  }

  onOver(): void {
    const place = this.#place;
    this.#place = null;
    if (place) this.clients.giveBack(place);
    this.#own?.end();
  }
}
