import { setMaxListeners } from 'node:events';
import type { Readable } from 'node:stream';
import { type Dispatcher, Pool } from 'undici';
import { messageOf, PunctualError } from '../core/errors.js';
import { nodeAddress } from './node-address.js';
import { type TlsMistake, tlsMistake } from './tls-mistakes.js';
import {
  type ByteStream,
  connectionClosed,
  errorFromAnswer,
  type Method,
  type RequestOptions,
  type StreamOptions,
  type Transport,
} from './transport.js';

/** The addresses of the nodes and the credentials for them. */
export interface HttpTransportOptions {
  /** Addresses of one or more nodes; any node answers any request. */
  readonly urls: readonly string[];
  readonly apiKey: string;
  /** The tenant to act for; only an operator's key may choose one. */
  readonly tenant?: string;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** Enough to keep a node busy; with more, requests would queue at the node instead of here. */
const MAX_CONNECTIONS = 64;
/** A long poll occupies its connection while it waits, so long polls have a larger pool of their own. */
const MAX_LONG_POLLS = 512;

/** How long a streamed answer may be silent: three of the server's heartbeats. */
const MAX_SILENCE_MS = 45_000;

/** A node did not answer. */
export class UnreachableError extends PunctualError {
  /** The address of the node. */
  readonly url: string;
  /** Whether the request may have reached the node and taken effect. */
  readonly sent: boolean;
  /** Whether the request timed out. Other requests that wait for the same node will probably time out too. */
  readonly timedOut: boolean;

  /** What happened, in a few words. */
  readonly reason: string;

  constructor(
    detail: string,
    node: { url: string; sent: boolean; timedOut: boolean; reason: string },
    cause: unknown,
  ) {
    super('UNREACHABLE', detail, { cause });
    this.name = 'UnreachableError';
    this.url = node.url;
    this.sent = node.sent;
    this.timedOut = node.timedOut;
    this.reason = node.reason;
  }
}

/** One error for several nodes that did not answer; `last` is what the newest of them met. */
export function noneReachable(last: UnreachableError, all: readonly UnreachableError[]): UnreachableError {
  const tried = all.map(({ url, reason }) => `${url} (${reason})`).join(', ');
  const mistake = all.map(tlsMistakeOf).find((each) => each?.nothingSent);
  const advice = mistake?.advice ?? 'Check the addresses, or start one with "punctual up".';
  const detail = `None of the nodes can be reached: ${tried}. ${advice}`;
  return new UnreachableError(detail, last, last);
}

/** A request that changes something may have taken effect, but no answer arrived. */
export function inDoubt(
  last: UnreachableError,
  all: readonly UnreachableError[],
  repeatable: boolean,
): UnreachableError {
  const tried = all.map(({ url, reason }) => `${url} (${reason})`).join(', ');
  const mistake = tlsMistakeOf(last);
  const detail = `No answer from ${tried}. It is not known whether the request was carried out. ${adviceInDoubt(repeatable)}${mistake ? ` ${mistake.advice}` : ''}`;
  return new UnreachableError(detail, { ...last, sent: true }, last);
}

function tlsMistakeOf({ url, timedOut, cause, reason }: UnreachableError): TlsMistake | null {
  return timedOut ? null : tlsMistake(url, codeOf(cause), reason);
}

/** What to do about a request that may have taken effect. */
export function adviceInDoubt(repeatable: boolean): string {
  return repeatable
    ? 'It is safe to repeat it with the same content and, if it has one, the same key.'
    : 'Look before you repeat it: it could take effect twice. Submissions with a key can be repeated safely.';
}

/** Errors that occur before a connection is established, so nothing has been sent. */
const NOTHING_SENT = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

interface Node {
  readonly url: string;
  readonly basePath: string;
  readonly calls: Pool;
  readonly longPolls: Pool;
  /** Limits of the requests in flight. */
  readonly open: Set<RequestLimit>;
}

/** Sends requests to one of several nodes, and switches to the next node when one does not answer or cannot serve. */
export class HttpTransport implements Transport {
  /** The options, for code that opens connections of its own. */
  readonly options: HttpTransportOptions;
  readonly #nodes: readonly Node[];
  readonly #identity: Readonly<Record<string, string>>;
  #current = 0;
  #isClosed = false;

  constructor(options: HttpTransportOptions) {
    if (options.urls.length === 0) {
      throw new PunctualError('CONFIGURATION', 'No address of a node was given; pass at least one URL.');
    }
    this.options = options;
    this.#nodes = options.urls.map(openNode);
    this.#identity = {
      authorization: `Bearer ${options.apiKey}`,
      ...(options.tenant !== undefined && { 'punctual-tenant': options.tenant }),
    };
  }

  /** How many nodes are configured. */
  get nodeCount(): number {
    return this.#nodes.length;
  }

  /** Sends the request to the current node, once. */
  async request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
    const index = this.#current;
    const node = this.#nodes[index]!;
    try {
      return await this.#ask<T>(node, method, path, options);
    } catch (error) {
      const unavailable = error instanceof PunctualError && error.status === 503;
      if (unavailable) this.#moveOn(index);
      throw error;
    }
  }

  /** Asks the current node, once, for an answer that is read while it is being sent. */
  async stream(path: string, options: StreamOptions = {}): Promise<AsyncIterable<string>> {
    const { answer, url } = await this.#open(path, options);
    return this.#pieces(answer.body.setEncoding('utf8'), url, options.signal);
  }

  /** The same for an answer of bytes. */
  async read(path: string, options: StreamOptions = {}): Promise<ByteStream> {
    const { answer, url } = await this.#open(path, options);
    return this.#pieces(answer.body, url, options.signal);
  }

  async #open(
    path: string,
    { signal, headers }: StreamOptions,
  ): Promise<{ readonly answer: Dispatcher.ResponseData; readonly url: string }> {
    const index = this.#current;
    const node = this.#nodes[index]!;
    try {
      signal?.throwIfAborted();
      const answer = await node.longPolls.request({
        method: 'GET',
        path: node.basePath + path,
        headers: { ...this.#identity, ...headers },
        headersTimeout: DEFAULT_TIMEOUT_MS,
        bodyTimeout: MAX_SILENCE_MS,
        ...(signal && { signal }),
      });
      if (answer.statusCode >= 300) await readAnswer(answer, node.url);
      return { answer, url: node.url };
    } catch (thrown) {
      const error = this.#streamError(thrown, node.url, signal);
      if (error instanceof PunctualError && error.status === 503) this.#moveOn(index);
      throw error;
    }
  }

  /**
   * Leaves a node that was found not to answer by other means: requests in flight to it time out now, and later ones
   * go to the next node.
   */
  abandon(url: string): void {
    const index = this.#nodes.findIndex((node) => node.url === url);
    if (index < 0) return;
    this.#moveOn(index);
    for (const limit of this.#nodes[index]!.open) limit.expire();
  }

  /** Closes all connections; requests in flight fail. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#nodes.flatMap((node) => [node.calls.destroy(), node.longPolls.destroy()]));
  }

  /**
   * Switches to the next node, unless another request has switched already: switching twice could lead back to a dead
   * node.
   */
  #moveOn(from: number): void {
    if (this.#current === from) this.#current = (from + 1) % this.#nodes.length;
  }

  async *#pieces<P>(body: AsyncIterable<P>, url: string, signal: AbortSignal | undefined): AsyncIterable<P> {
    try {
      yield* body;
    } catch (error) {
      throw this.#streamError(error, url, signal);
    }
  }

  #streamError(error: unknown, url: string, signal: AbortSignal | undefined): unknown {
    if (error instanceof PunctualError) return error;
    if (signal?.aborted) return signal.reason;
    return this.#isClosed ? connectionClosed() : unreachable(url, error, false);
  }

  async #ask<T>(node: Node, method: Method, path: string, options: RequestOptions): Promise<T> {
    options.signal?.throwIfAborted();
    const { bytes } = options;
    const json = options.bodyText ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
    const body = bytes?.open() ?? json;
    const limit = new RequestLimit(options.timeoutMs ?? DEFAULT_TIMEOUT_MS, options.signal);
    node.open.add(limit);
    try {
      const answer = await (options.longPoll ? node.longPolls : node.calls).request({
        method,
        path: node.basePath + path,
        headers: {
          // A request with its own credential does not act for the tenant of the key.
          ...(options.headers?.authorization === undefined && this.#identity),
          ...(json !== undefined && { 'content-type': 'application/json' }),
          ...(bytes && { 'content-type': 'application/octet-stream', 'content-length': String(bytes.size) }),
          ...options.headers,
        },
        // It takes what can be iterated, too, though its type does not say so.
        ...(body !== undefined && { body: body as Readable | string }),
        signal: limit.signal,
      });
      return await readAnswer<T>(answer, node.url);
    } catch (error) {
      if (error instanceof PunctualError) throw error;
      const { signal } = options;
      // A timeout set by the caller means the same as ours: the node does not answer. Any other abort says nothing
      // about it.
      if (signal?.aborted && !isTimeout(signal.reason)) throw signal.reason;
      throw unreachable(node.url, error, limit.timedOut || signal?.aborted === true);
    } finally {
      node.open.delete(limit);
      limit.release();
    }
  }
}

/** Aborts a request when its time is up or the caller's signal aborts, and detaches from that signal afterwards. */
class RequestLimit {
  timedOut = false;
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #callerSignal: AbortSignal | undefined;
  readonly #abort = () => this.#controller.abort();

  constructor(timeoutMs: number, callerSignal: AbortSignal | undefined) {
    this.#timer = setTimeout(() => this.expire(), timeoutMs);
    this.#callerSignal = callerSignal;
    // Hundreds of requests may share one signal; each removes its listener when it ends, so nothing leaks.
    if (callerSignal) setMaxListeners(0, callerSignal);
    callerSignal?.addEventListener('abort', this.#abort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Aborts the request as if its time were up. */
  expire(): void {
    this.timedOut = true;
    this.#abort();
  }

  release(): void {
    clearTimeout(this.#timer);
    this.#callerSignal?.removeEventListener('abort', this.#abort);
  }
}

function openNode(url: string): Node {
  const parsed = nodeAddress(url);
  // Timeouts are set per request here; undici's own would cut long polls short.
  const settings = { headersTimeout: 0, bodyTimeout: 0, connect: { timeout: CONNECT_TIMEOUT_MS } };
  return {
    url,
    basePath: parsed.pathname.replace(/\/+$/, ''),
    calls: new Pool(parsed.origin, { ...settings, connections: MAX_CONNECTIONS }),
    longPolls: new Pool(parsed.origin, { ...settings, connections: MAX_LONG_POLLS }),
    open: new Set(),
  };
}

async function readAnswer<T>(answer: Dispatcher.ResponseData, url: string): Promise<T> {
  const text = await answer.body.text();
  if (answer.statusCode >= 300) {
    throw errorFromAnswer(answer.statusCode, text, header(answer, 'retry-after'), url);
  }
  if (text === '') return undefined as T;
  if (!header(answer, 'content-type')?.includes('json')) return text as T;
  try {
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new PunctualError('INTERNAL', `${url} answered with JSON that cannot be read.`, { cause });
  }
}

function header(answer: Dispatcher.ResponseData, name: string): string | undefined {
  const value = answer.headers[name];
  return Array.isArray(value) ? value[0] : value;
}

function unreachable(url: string, error: unknown, timedOut: boolean): UnreachableError {
  const code = codeOf(error);
  const why = timedOut ? 'no answer in time' : messageOf(error);
  const mistake = timedOut ? null : tlsMistake(url, code, why);
  const sent = timedOut || !(mistake?.nothingSent || NOTHING_SENT.has(code));
  const advice =
    mistake?.advice ?? 'Is a node running there? Check the address, or start one with "punctual up".';
  const detail = `${url} cannot be reached (${why}). ${advice}`;
  return new UnreachableError(detail, { url, sent, timedOut, reason: why }, error);
}

function codeOf(error: unknown): string {
  return String((error as { code?: unknown } | null)?.code);
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError';
}
