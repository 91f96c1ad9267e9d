import { PunctualError } from '../core/errors.js';
import {
  adviceInDoubt,
  HttpTransport,
  type HttpTransportOptions,
  inDoubt,
  noneReachable,
  UnreachableError,
} from '../transport/http-transport.js';
import { GrowingPause, pause } from '../transport/pause.js';
import type { ByteStream, Method, RequestOptions, StreamOptions, Transport } from '../transport/transport.js';

/** The nodes to ask, and how long a failed request is repeated. */
export interface ApiClientOptions extends HttpTransportOptions {
  /** How long a request is repeated while no node can serve it; default 8 s. */
  readonly retryForMs?: number;
}

const RETRY_FOR_MS = 8_000;

/**
 * The HTTP API of a cluster. While no node can serve, idempotent requests are repeated for a while. Other requests
 * are repeated only if nothing was sent, because a lost answer leaves open whether the request took effect.
 */
export class ApiClient implements Transport {
  readonly #transport: HttpTransport;
  readonly #retryForMs: number;
  #isClosed = false;

  constructor(options: ApiClientOptions) {
    this.#transport = new HttpTransport(options);
    this.#retryForMs = options.retryForMs ?? RETRY_FOR_MS;
  }

  /** Returns the answer's JSON, its text if it is not JSON, or undefined if it is empty. */
  request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
    const repeatable = options.retry ?? method === 'GET';
    const ask = () => this.#transport.request<T>(method, path, options);
    return this.#repeat(ask, { repeatable, changes: method !== 'GET' }, options.signal);
  }

  /** An answer that is read while it is being sent. It is asked for again only until it has begun. */
  stream(path: string, options: StreamOptions = {}): Promise<AsyncIterable<string>> {
    const ask = () => this.#transport.stream(path, options);
    return this.#repeat(ask, { repeatable: true, changes: false }, options.signal);
  }

  /** The same as bytes. */
  read(path: string, options: StreamOptions = {}): Promise<ByteStream> {
    const ask = () => this.#transport.read(path, options);
    return this.#repeat(ask, { repeatable: true, changes: false }, options.signal);
  }

  async #repeat<T>(ask: () => Promise<T>, kind: RequestKind, signal: AbortSignal | undefined): Promise<T> {
    const until = performance.now() + this.#retryForMs;
    const growing = new GrowingPause(50, 1_000);
    const unreachable = new Map<string, UnreachableError>();
    for (let tries = 1; ; tries++) {
      if (this.#isClosed) {
        throw new PunctualError(
          'CONFIGURATION',
          'This connection was closed with close(): open another one.',
        );
      }
      try {
        return await ask();
      } catch (error) {
        // That one try may have taken effect counts more than why a later one did not.
        if (error instanceof UnreachableError && !unreachable.get(error.url)?.sent)
          unreachable.set(error.url, error);
        // All nodes are asked before the first pause, and before giving up if that can do no harm.
        const isRound = tries % this.#transport.nodeCount === 0;
        const isOver = performance.now() >= until && (isRound || !isUnsent(error));
        if (!mayRepeat(error, kind.repeatable) || isOver)
          throw together(error, [...unreachable.values()], kind);
        if (isRound) await pause(growing.nextMs(), signal);
      }
    }
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#transport.close();
  }
}

/** What is to be known about a request when it fails. */
interface RequestKind {
  readonly repeatable: boolean;
  /** Whether it changes something, so that it matters whether it was carried out. */
  readonly changes: boolean;
}

/**
 * The error of the last try. If it is about a node that could not be reached, it names all of those. It says whether the
 * request may have been carried out, which follows from all tries.
 */
function together(error: unknown, unreachable: readonly UnreachableError[], kind: RequestKind): unknown {
  const isInDoubt = kind.changes && unreachable.some(({ sent }) => sent);
  if (error instanceof UnreachableError) {
    if (isInDoubt) return inDoubt(error, unreachable, kind.repeatable);
    return unreachable.length > 1 ? noneReachable(error, unreachable) : error;
  }
  if (!isInDoubt || !(error instanceof PunctualError) || error.status !== 503) return error;
  const { code, message, errors, retryAfter } = error;
  const detail = `${message} The answer to an earlier try was lost. ${adviceInDoubt(kind.repeatable)}`;
  return new PunctualError(code, detail, {
    cause: error,
    errors,
    ...(retryAfter !== undefined && { retryAfter }),
  });
}

function isUnsent(error: unknown): boolean {
  return error instanceof UnreachableError && !error.sent;
}

/** Whether to repeat a request after this error; one that is not `repeatable` only if it did certainly nothing. */
export function mayRepeat(error: unknown, repeatable: boolean): boolean {
  if (!(error instanceof PunctualError)) return false;
  if (isUnsent(error)) return true;
  // A node that is stopping or overloaded refuses the request before it does anything.
  if (error.code === 'SHUTTING_DOWN' || error.code === 'TOO_BUSY') return true;
  // An earlier try of the same request is still being carried out, and is answered soon.
  if (error.code === 'IDEMPOTENCY_IN_FLIGHT') return true;
  // Waiting gives no node the master key.
  if (error.code === 'SECRETS_UNAVAILABLE') return false;
  return repeatable && error.status === 503;
}
