import { PunctualError } from '../core/errors.js';
import { HttpTransport, type HttpTransportOptions, UnreachableError } from '../transport/http-transport.js';
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
    for (let tries = 1; ; tries++) {
      try {
        return await this.#transport.request<T>(method, path, options);
      } catch (error) {
        if (!mayRepeat(error, repeatable) || performance.now() >= until) throw error;
        // All nodes are asked before the first pause.
        if (tries % this.#transport.nodeCount === 0) await pause(growing.nextMs(), options.signal);
      }
    }
  }

  /** Ends all connections. */
  async close(): Promise<void> {
    await this.#transport.close();
  }
}

function mayRepeat(error: unknown, repeatable: boolean): boolean {
  if (!(error instanceof PunctualError)) return false;
  if (error instanceof UnreachableError && !error.sent) return true;
  // A node that is stopping or overloaded refuses the request before it does anything.
  if (error.code === 'SHUTTING_DOWN' || error.code === 'TOO_BUSY') return true;
  return repeatable && error.status === 503;
}
