import { PunctualError } from '../core/errors.js';
import {
  HttpTransport,
  type HttpTransportOptions,
  noneReachable,
  UnreachableError,
} from '../transport/http-transport.js';
import { GrowingPause, pause } from '../transport/pause.js';
import type { Method, RequestOptions, Transport } from '../transport/transport.js';

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

  constructor(options: ApiClientOptions) {
    this.#transport = new HttpTransport(options);
    this.#retryForMs = options.retryForMs ?? RETRY_FOR_MS;
  }

  /** Returns the answer's JSON, its text if it is not JSON, or undefined if it is empty. */
  async request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
    const repeatable = options.retry ?? method === 'GET';
    const until = performance.now() + this.#retryForMs;
    const growing = new GrowingPause(50, 1_000);
    const unreachable = new Map<string, UnreachableError>();
    for (let tries = 1; ; tries++) {
      try {
        return await this.#transport.request<T>(method, path, options);
      } catch (error) {
        if (error instanceof UnreachableError) unreachable.set(error.url, error);
        // All nodes are asked before the first pause, and before giving up if that can do no harm.
        const isRound = tries % this.#transport.nodeCount === 0;
        const isOver = performance.now() >= until && (isRound || !isUnsent(error));
        if (!mayRepeat(error, repeatable) || isOver) throw together(error, [...unreachable.values()]);
        if (isRound) await pause(growing.nextMs(), options.signal);
      }
    }
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await this.#transport.close();
  }
}

/** The error of the last try, which names all nodes that could not be reached if it is about one of them. */
function together(error: unknown, unreachable: readonly UnreachableError[]): unknown {
  return error instanceof UnreachableError && unreachable.length > 1
    ? noneReachable(error, unreachable)
    : error;
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
  return repeatable && error.status === 503;
}
