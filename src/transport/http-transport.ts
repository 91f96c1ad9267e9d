import { setMaxListeners } from 'node:events';
import { type Dispatcher, Pool } from 'undici';
import { messageOf, PunctualError } from '../core/errors.js';
import { errorFromAnswer, type Method, type RequestOptions, type Transport } from './transport.js';

/** Where the nodes are and who asks. */
export interface HttpTransportOptions {
  /** Addresses of one or more nodes; each can answer everything. */
  readonly urls: readonly string[];
  readonly apiKey: string;
  /** The tenant to act for; only an operator's key may choose one. */
  readonly tenant?: string;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** Enough to keep a node busy; more would only queue there instead of here. */
const MAX_CONNECTIONS = 64;
/** Long polls hold their connection, so they have connections of their own and more of them. */
const MAX_LONG_POLLS = 512;

/** No answer came from a node. */
export class UnreachableError extends PunctualError {
  /** The address of the node. */
  readonly url: string;
  /** Whether the request may have reached the node and taken effect. */
  readonly sent: boolean;
  /** Whether the node kept silent until the time was up, so that other requests there wait in vain as well. */
  readonly timedOut: boolean;

  constructor(detail: string, node: { url: string; sent: boolean; timedOut: boolean }, cause: unknown) {
    super('UNREACHABLE', detail, { cause });
    this.name = 'UnreachableError';
    this.url = node.url;
    this.sent = node.sent;
    this.timedOut = node.timedOut;
  }
}

/** Failures that happen before a connection stands, so before anything could be sent. */
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
  /** Requests that have not ended. */
  readonly open: Set<RequestLimit>;
}

/** Asks one of several nodes, and the next one from then on when a node does not answer or cannot serve. */
export class HttpTransport implements Transport {
  /** Where the nodes are and who asks, for whoever needs connections of its own. */
  readonly options: HttpTransportOptions;
  readonly #nodes: readonly Node[];
  readonly #identity: Readonly<Record<string, string>>;
  #current = 0;

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

  /** How many nodes there are to turn to. */
  get nodeCount(): number {
    return this.#nodes.length;
  }

  /** Makes one try at one node. */
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

  /**
   * Gives up a node that was found silent elsewhere: requests that wait for it fail now instead of when their
   * time is up, and further ones go to the next node.
   */
  abandon(url: string): void {
    const index = this.#nodes.findIndex((node) => node.url === url);
    if (index < 0) return;
    this.#moveOn(index);
    for (const limit of this.#nodes[index]!.open) limit.expire();
  }

  /** Ends all connections; requests under way fail. */
  async close(): Promise<void> {
    await Promise.all(this.#nodes.flatMap((node) => [node.calls.destroy(), node.longPolls.destroy()]));
  }

  /** Another request may have moved on already; moving twice could lead back to the node that is down. */
  #moveOn(from: number): void {
    if (this.#current === from) this.#current = (from + 1) % this.#nodes.length;
  }

  async #ask<T>(node: Node, method: Method, path: string, options: RequestOptions): Promise<T> {
    options.signal?.throwIfAborted();
    const body = options.bodyText ?? (options.body === undefined ? undefined : JSON.stringify(options.body));
    const limit = new RequestLimit(options.timeoutMs ?? DEFAULT_TIMEOUT_MS, options.signal);
    node.open.add(limit);
    try {
      const answer = await (options.longPoll ? node.longPolls : node.calls).request({
        method,
        path: node.basePath + path,
        headers: {
          // A request with a credential of its own is not made on behalf of the key's tenant.
          ...(options.headers?.authorization === undefined && this.#identity),
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...options.headers,
        },
        ...(body !== undefined && { body }),
        signal: limit.signal,
      });
      return await readAnswer<T>(answer, node.url);
    } catch (error) {
      if (error instanceof PunctualError) throw error;
      const { signal } = options;
      // A caller's own limit of time says the same about the node as ours; any other abort says nothing.
      if (signal?.aborted && !isTimeout(signal.reason)) throw signal.reason;
      throw unreachable(node.url, error, limit.timedOut || signal?.aborted === true);
    } finally {
      node.open.delete(limit);
      limit.release();
    }
  }
}

/** Ends one try when its time is up or the caller gives up. Lets go of the caller's signal afterwards. */
class RequestLimit {
  timedOut = false;
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #callerSignal: AbortSignal | undefined;
  readonly #abort = () => this.#controller.abort();

  constructor(timeoutMs: number, callerSignal: AbortSignal | undefined) {
    this.#timer = setTimeout(() => this.expire(), timeoutMs);
    this.#callerSignal = callerSignal;
    // One signal for hundreds of requests is fine: each lets go of it in the end, so nothing leaks.
    if (callerSignal) setMaxListeners(0, callerSignal);
    callerSignal?.addEventListener('abort', this.#abort, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Ends the try as if its time were up. */
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
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (!parsed || !/^https?:$/.test(parsed.protocol)) {
    throw new PunctualError(
      'CONFIGURATION',
      `${JSON.stringify(url)} is not the address of a node; expected something like http://127.0.0.1:8080.`,
    );
  }
  // The limits of time are ours, per request: undici's own would cut long polls short.
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
  const code = (error as { code?: unknown } | null)?.code;
  const sent = timedOut || !NOTHING_SENT.has(String(code));
  const why = timedOut ? 'no answer in time' : messageOf(error);
  const detail = `${url} cannot be reached (${why}). Is a node running there? Check the address, or start one with "punctual up".`;
  return new UnreachableError(detail, { url, sent, timedOut }, error);
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof DOMException && reason.name === 'TimeoutError';
}
