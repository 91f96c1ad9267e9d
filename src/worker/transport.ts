/** How a request to the HTTP API is made, whether over the network or inside a process that embeds a node. */

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface RequestOptions {
  /** Sent as JSON. */
  readonly body?: unknown;
  /** Sent as it is, in place of `body`: JSON that is written already. */
  readonly bodyText?: string;
  readonly signal?: AbortSignal;
  /** How long one try may take; default 30 s. */
  readonly timeoutMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the request may safely be made twice. Reading requests are, the rest only if this says so. */
  readonly retry?: boolean;
  /** Whether the answer is meant to take long, which must not hold up other requests. */
  readonly longPoll?: boolean;
}

/** Makes requests of the HTTP API: paths and bodies are those of the contract, errors are PunctualErrors. */
export interface Transport {
  /** Whether the node is in this process, so that what is sent is not written as JSON. */
  readonly inProcess?: boolean;
  request<T>(method: Method, path: string, options?: RequestOptions): Promise<T>;
}
